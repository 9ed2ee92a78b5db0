/* Threads whose first allocation comes in the last pass over the keys of pthreads, behind the library's own key, end unseen by it. If many do so at
 * once, the memory in their caches is returned all the same. Threads that live on without a call keep their caches. */
#include <pthread.h>
#include <stdint.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "tasks.h"

enum { LOST = 600, LIVING = 12, BLOCKS = 60, STEP = 48, PASSES = 4, STACK = 64 << 10, LEFT_KIB_MOST = 6144 };

static pthread_key_t key;
static pthread_barrier_t lost_barrier, living_barrier;

static size_t size_of(size_t block) { return 16 + block * STEP; }

static void take(void *block[BLOCKS], unsigned seed) {
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = unseen(malloc(size_of(i)));
        EXPECT(block[i] != NULL, "no block");
        pattern_fill(block[i], 0, size_of(i), seed);
    }
}

static void give(void *block[BLOCKS], unsigned seed) {
    for (size_t i = 0; i < BLOCKS; i++) {
        EXPECT(pattern_mismatch(block[i], size_of(i), seed) == SIZE_MAX, "a block is somebody else's too");
        free(block[i]);
    }
}

static void work(unsigned seed) {
    void *block[BLOCKS];
    take(block, seed);
    give(block, seed);
}

static void at_the_end(void *pass) {
    if ((uintptr_t)pass == PASSES) {
        work(1);
    } else {
        EXPECT(pthread_setspecific(key, (char *)pass + 1) == 0, "the key is not set again");
    }
}

static void *is_lost(void *unused) {
    pthread_barrier_wait(&lost_barrier);
    EXPECT(pthread_setspecific(key, (void *)1) == 0, "the key is not set");
    pthread_barrier_wait(&lost_barrier);
    return unused;
}

static void *lives_on(void *number) {
    unsigned seed = 2 + (unsigned)(uintptr_t)number;
    work(seed);
    pthread_barrier_wait(&living_barrier); /* its cache is full now */
    pthread_barrier_wait(&living_barrier);
    void *block[BLOCKS], *more[BLOCKS];
    take(block, seed);
    take(more, seed + LIVING);
    pthread_barrier_wait(&living_barrier);
    give(more, seed + LIVING);
    give(block, seed);
    return NULL;
}

static void start(pthread_t *thread, size_t threads, void *(*run)(void *)) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    EXPECT(pthread_attr_setstacksize(&small, STACK) == 0, "no such stack");
    for (size_t i = 0; i < threads; i++) {
        EXPECT(pthread_create(&thread[i], &small, run, (void *)(uintptr_t)i) == 0, "no thread");
    }
}

static void join(const pthread_t *thread, size_t threads) {
    for (size_t i = 0; i < threads; i++) {
        EXPECT(pthread_join(thread[i], NULL) == 0, "no end");
    }
}

int main(void) {
    static pthread_t lost[LOST], living[LIVING];
    require_serving();
    free(unseen(malloc(10))); /* the library's key comes before the program's */
    EXPECT(pthread_key_create(&key, at_the_end) == 0, "no key");
    pthread_barrier_init(&lost_barrier, NULL, LOST + 1);
    pthread_barrier_init(&living_barrier, NULL, LIVING + 1);
    start(living, LIVING, lives_on);
    pthread_barrier_wait(&living_barrier);
    start(lost, LOST, is_lost);
    pthread_barrier_wait(&lost_barrier);
    size_t before_kib = resident_kib(); /* with all the stacks, some of which libc keeps */
    pthread_barrier_wait(&lost_barrier);
    join(lost, LOST);
    size_t left_kib = resident_more_kib(tasks_await_resident(before_kib + LEFT_KIB_MOST), before_kib);
    EXPECT(left_kib <= LEFT_KIB_MOST, "%zu KiB stay", left_kib);
    pthread_barrier_wait(&living_barrier);
    void *block[BLOCKS];
    take(block, 1);
    pthread_barrier_wait(&living_barrier);
    give(block, 1);
    join(living, LIVING);
    return 0;
}
