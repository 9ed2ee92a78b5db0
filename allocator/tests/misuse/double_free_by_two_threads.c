/* Two threads free one block, each once. */
#include <pthread.h>

#include "misuse.h"

static void *free_and_end(void *block) {
    free(block);
    return NULL;
}

int main(void) {
    void *block = unseen(malloc(320));
    void *neighbour = unseen(malloc(320));
    announce("double free: pointer %p, size class 320 bytes", block);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, free_and_end, block) == 0, "no thread");
    pthread_join(thread, NULL);
    free(unseen(block));
    flush();
    free(neighbour);
    return unnoticed();
}
