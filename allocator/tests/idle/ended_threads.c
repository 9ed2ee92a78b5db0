/* Many threads that were at work at once, and have ended: what their caches were made of is returned too, while the program sleeps or when it asks for that
 * (`trim`). Threads that come later work as those before. */
#include <pthread.h>
#include <stdint.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "tasks.h"

enum { THREADS = 400, BLOCKS = 1000, SIZES = 4000, STACK = 64 << 10, LEFT_KIB_MOST = 10240 };

extern int malloc_trim(size_t pad) __attribute__((weak)); /* musl has none */

static pthread_barrier_t barrier;

static void *work(void *number) {
    void *block[BLOCKS];
    unsigned seed = 1 + (unsigned)(uintptr_t)number;
    memset(block, 1, sizeof block); /* the stack's pages are there before the threads work */
    (void)unseen(block);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(1 + i * 7919 % SIZES);
        EXPECT(block[i] != NULL, "no memory");
        pattern_fill(block[i], 0, 1 + i * 7919 % SIZES, seed);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        EXPECT(pattern_mismatch(block[i], 1 + i * 7919 % SIZES, seed) == SIZE_MAX, "a block is somebody else's too");
        free(block[i]);
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Returns what was resident before the threads worked. */
static size_t run_threads(void) {
    static pthread_t thread[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    EXPECT(pthread_attr_setstacksize(&small, STACK) == 0, "no such stack");
    for (size_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], &small, work, (void *)(uintptr_t)i) == 0, "no thread");
    }
    pthread_barrier_wait(&barrier);
    size_t before_kib = resident_kib();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_join(thread[i], NULL) == 0, "no end");
    }
    return before_kib;
}

int main(int count, char **arguments) {
    require_serving();
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    bool trims = count > 1 && strcmp(arguments[1], "trim") == 0;
    for (int turn = 0; turn < 2; turn++) {
        size_t before_kib = run_threads();
        if (trims) {
            EXPECT(malloc_trim != NULL && malloc_trim(0) == 1, "the trim returns nothing");
        }
        size_t now_kib = trims ? resident_kib() : tasks_await_resident(before_kib + LEFT_KIB_MOST);
        EXPECT(resident_more_kib(now_kib, before_kib) <= LEFT_KIB_MOST, "%zu KiB stay",
               resident_more_kib(now_kib, before_kib));
    }
    return 0;
}
