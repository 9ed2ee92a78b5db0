/* A foreign pointer freed by a thread that never allocated. */
#include <pthread.h>

#include "misuse.h"

static void *free_foreign(void *object) {
    free(object);
    return NULL;
}

int main(void) {
    static char object[64];
    announce("foreign pointer: pointer %p was not allocated here", (void *)object);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, free_foreign, unseen(object)) == 0, "no thread");
    pthread_join(thread, NULL);
    return unnoticed();
}
