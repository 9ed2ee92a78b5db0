/* Threads that end when nobody else calls any more: what their caches held goes back while the program sleeps. Their stacks are small enough for
 * libc to keep them, so that it frees nothing either. */
#include <pthread.h>

#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { THREADS = 50, BLOCKS = 1000, SIZES = 1000, TURNS = 4, STACK = 64 << 10, GONE_MS = 20000, LEFT_KIB_MOST = 7168 };

static pthread_barrier_t barrier;

static void *work(void *unused) {
    void *block[BLOCKS];
    for (int turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            size_t size = 1 + (i * 7919 + (size_t)turn * 31) % SIZES;
            block[i] = malloc(size);
            EXPECT(block[i] != NULL, "no memory");
            memset(block[i], 1, size);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            free(block[i]);
        }
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void) {
    pthread_t thread[THREADS];
    pthread_attr_t small;
    require_serving();
    pthread_attr_init(&small);
    EXPECT(pthread_attr_setstacksize(&small, STACK) == 0, "no such stack");
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    size_t before_kib = resident_kib();
    for (size_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], &small, work, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&barrier);
    EXPECT(tasks_await_keeper(false, GONE_MS), "the keeper does not end");
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    size_t left_kib = resident_more_kib(tasks_await_resident(before_kib + LEFT_KIB_MOST), before_kib);
    EXPECT(left_kib <= LEFT_KIB_MOST, "%zu KiB stay", left_kib);
    return 0;
}
