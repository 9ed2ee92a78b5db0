/* The second free lies in the cache of a thread that ends. */
#include <pthread.h>

#include "misuse.h"

static void *free_and_end(void *block) {
    free(block);
    return NULL;
}

int main(void) {
    void *block = unseen(malloc(200));
    void *neighbour = unseen(malloc(200));
    announce("double free: pointer %p, size class 224 bytes", block);
    free(block);
    flush();
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, free_and_end, block) == 0, "no thread");
    pthread_join(thread, NULL);
    flush();
    free(neighbour);
    return unnoticed();
}
