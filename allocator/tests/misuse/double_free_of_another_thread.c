/* A block that another thread allocated is freed twice by this one. */
#include <pthread.h>

#include "misuse.h"

static pthread_barrier_t allocated;
static void *block;

static void *allocate_and_stay(void *unused) {
    (void)unused;
    block = unseen(malloc(1000));
    pthread_barrier_wait(&allocated);
    while (pause() == -1) {
    }
    return NULL;
}

int main(void) {
    pthread_barrier_init(&allocated, NULL, 2);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, allocate_and_stay, NULL) == 0, "no thread");
    pthread_barrier_wait(&allocated);
    announce("double free: pointer %p, size class 1024 bytes", block);
    free(block);
    free(unseen(block));
    flush();
    return unnoticed();
}
