/* memory.c: patients that suffer in memory, each with nothing else wrong. */
#define _GNU_SOURCE
#include "patient.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A large block that was freed has raised the threshold for trimming to twice its size. */
static void retention(void) {
    free(asked(31 * MIB));
    void **blocks = many(50 * KIB, 1000);
    for (size_t i = 0; i < 50 * KIB; i++)
        free(blocks[i]);
    free(blocks);
    work(1500);
}

static void pinned_top(void) {
    void **blocks = many(100 * KIB, 1000);
    void *pin = asked(1000);
    for (size_t i = 0; i < 100 * KIB; i++)
        free(blocks[i]);
    *(volatile char *)pin = 1;
    work(1500);
}

static void slab_fragmentation(void) {
    riddled(400 * KIB, 200);
    work(1500);
}

static pthread_barrier_t full, over;

/* Threads have much for a moment each, one after the other, and together hold what each once had. */
static void *fills_arena(void *unused) {
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&turn);
    void **blocks = many(12 * KIB, 1000);
    void *pin = asked(1000);
    for (size_t i = 0; i < 12 * KIB; i++)
        free(blocks[i]);
    pthread_mutex_unlock(&turn);
    pthread_barrier_wait(&over);
    free(pin);
    free(blocks);
    return unused;
}

static void arena_bloat(void) {
    enum { THREADS = 12 };
    pthread_t threads[THREADS];
    pthread_barrier_init(&over, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        start(&threads[i], fills_arena, NULL);
    work(2000);
    pthread_barrier_wait(&over);
    for (int i = 0; i < THREADS; i++)
        finish(threads[i]);
}

static void leak(void) {
    for (int i = 0; i < 500; i++) {
        for (int j = 0; j < 400; j++) {
            void *kept = asked(200), *freed = asked(300), *too = asked(100);
            memset(kept, 1, 200);
            free(freed);
            free(too);
        }
        work(1);
    }
}

/* Many threads that wait, each with small blocks of every size in its cache: to the C library all of these are in use. */
static void *fills_cache(void *unused) {
    enum { SIZES = 64, EACH = 7 };
    void *blocks[SIZES][EACH];
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t j = 0; j < EACH; j++)
            memset(blocks[i][j] = asked(16 * i + 8), 1, 16 * i + 8);
    }
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t j = 0; j < EACH; j++)
            free(blocks[i][j]);
    }
    pthread_barrier_wait(&full);
    pthread_barrier_wait(&over);
    return unused;
}

static void thread_cache_bloat(void) {
    enum { THREADS = 256 };
    static pthread_t threads[THREADS];
    mallopt(M_ARENA_MAX, 1);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KIB);
    pthread_barrier_init(&full, NULL, THREADS + 1);
    pthread_barrier_init(&over, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], &small, fills_cache, NULL) != 0)
            give_up("no thread");
    }
    pthread_barrier_wait(&full);
    work(1500);
    pthread_barrier_wait(&over);
    for (int i = 0; i < THREADS; i++)
        finish(threads[i]);
}

/* Blocks that are hardly written to, in a heap for which huge pages were asked: one byte brings in 2 MiB. */
static void huge_page_bloat(void) {
    enum { HEAP = 192, BLOCKS = 1500 };
    mallopt(M_TOP_PAD, HEAP * MIB);
    void *first = asked(120 * KIB), *second = asked(120 * KIB); /* more than a heap has that is open already */
    free(second);
    free(first);
    char *end = sbrk(0);
    if (end != (void *)-1) {
        uintptr_t from = ((uintptr_t)end - HEAP * (size_t)MIB + 2 * MIB - 1) & ~((uintptr_t)2 * MIB - 1);
        (void)madvise((void *)from, (uintptr_t)end - from,
                      MADV_HUGEPAGE); /* refused where there are none: nothing is sick */
    }
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        *(volatile char *)(blocks[i] = asked(120 * KIB)) = 1;
    for (int i = 0; i < BLOCKS; i++) {
        if (i % 16 != 0)
            free(blocks[i]);
    }
    work(1500);
    for (int i = 0; i < BLOCKS; i += 16)
        free(blocks[i]);
}

/* Well by itself: it is its control group that has hardly room for it. */
static void hardly_fits(void) {
    enum { BLOCKS = 118 * 1000, SIZE = 8000 };
    void **blocks = many(BLOCKS, SIZE);
    work(1200);
    free_many(blocks, BLOCKS);
}

const struct patient patients_in_memory[] = {
    {"retention-after-peak", retention},
    {"pinned-top-fragmentation", pinned_top},
    {"slab-fragmentation", slab_fragmentation},
    {"arena-bloat", arena_bloat},
    {"thread-cache-bloat", thread_cache_bloat},
    {"huge-page-bloat", huge_page_bloat},
    {"leak", leak},
    {"memory-limit-pressure", hardly_fits},
    {NULL, NULL},
};
