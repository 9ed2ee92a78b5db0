/* time.c: patients that suffer in time, each with nothing else wrong. */
#define _GNU_SOURCE
#include "patient.h"

#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* One knob is turned, which freezes the threshold for mappings at 128 KiB: every MiB is mapped anew. */
static void mapping_churn(void) {
    mallopt(M_TRIM_THRESHOLD, 64 * MIB);
    for (int i = 0; i < 1500; i++) {
        void *matrix = asked(1 * MIB);
        touch(matrix, 1 * MIB);
        free(matrix);
    }
}

/* The other knob alone: large blocks lie in the heap, whose end is given back at each free. */
static void trim_churn(void) {
    mallopt(M_MMAP_THRESHOLD, 32 * MIB);
    for (int i = 0; i < 1500; i++) {
        void *matrix = asked(1 * MIB);
        touch(matrix, 1 * MIB);
        free(matrix);
    }
}

static void *grows(void *unused) {
    enum { BLOCKS = 2000, SIZE = 24 * KIB };
    static void *blocks[BLOCKS];
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < BLOCKS; i++)
            *(volatile char *)(blocks[i] = asked(SIZE)) = 1;
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    return unused;
}

static void mprotect_growth(void) {
    pthread_t thread;
    start(&thread, grows, NULL);
    finish(thread);
}

static void first_touch(void) {
    void *all = asked(256 * (size_t)MIB);
    touch(all, 256 * (size_t)MIB);
    work(7);
    free(all);
}

static void huge_pages_missing(void) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    first_touch();
}

static void *mallocs(void *unused) {
    for (int i = 0; i < 600000; i++) {
        void *one = asked(2 * KIB), *other = asked(3 * KIB);
        free(one);
        free(other);
    }
    return unused;
}

/* All threads have one heap, and blocks too large for their caches. */
static void lock_contention(void) {
    mallopt(M_ARENA_MAX, 1);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        start(&threads[i], mallocs, NULL);
    for (int i = 0; i < 4; i++)
        finish(threads[i]);
}

/* A ring between two threads: release and acquire of each slot hand its block over. */
enum { SLOTS = 4096, HANDED = 6000000 };
static _Atomic(void *) slots[SLOTS];

static void *frees(void *unused) {
    for (int i = 0; i < HANDED; i++) {
        void *block;
        while ((block = atomic_exchange_explicit(&slots[i % SLOTS], NULL, memory_order_acquire)) == NULL)
            sched_yield();
        free(block);
    }
    return unused;
}

static void remote_free(void) {
    pthread_t thread;
    start(&thread, frees, NULL);
    for (int i = 0; i < HANDED; i++) {
        void *block = asked(100);
        while (atomic_load_explicit(&slots[i % SLOTS], memory_order_relaxed) != NULL)
            sched_yield();
        atomic_store_explicit(&slots[i % SLOTS], block, memory_order_release);
    }
    finish(thread);
}

/* Many lists grow in turn by a few bytes each: there is hardly ever room behind one. */
static void quadratic_realloc(void) {
    enum { LISTS = 300 };
    static char *lists[LISTS];
    for (size_t size = 64; size < 40 * KIB; size += 32) {
        for (size_t i = 0; i < LISTS; i++) {
            if ((lists[i] = realloc(lists[i], size)) == NULL)
                exit(1);
            lists[i][size - 1] = 1;
        }
    }
}

static void calloc_clearing(void) {
    free(asked(16 * MIB)); /* from now on blocks of its size lie in the heap */
    for (int i = 0; i < 8000; i++) {
        char *buffer = calloc(1, 2 * MIB);
        if (buffer == NULL)
            exit(1);
        *(volatile char *)buffer = 1;
        free(buffer);
    }
}

const struct patient patients_in_time[] = {
    {"mapping-churn", mapping_churn},           {"trim-churn", trim_churn},
    {"mprotect-growth", mprotect_growth},       {"first-touch-faults", first_touch},
    {"huge-pages-missing", huge_pages_missing}, {"lock-contention", lock_contention},
    {"remote-free-pingpong", remote_free},      {"quadratic-realloc", quadratic_realloc},
    {"calloc-clearing", calloc_clearing},       {NULL, NULL},
};
