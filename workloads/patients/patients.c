/* patients: sick programs by the name of what they suffer from, each with nothing else wrong, and some that are well.
 *
 *   patients SYMPTOM     runs for about a second; exit status 0, nothing printed */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static void *asked(size_t size) {
    void *block = malloc(size);
    if (block == NULL) {
        fputs("patients: no memory\n", stderr);
        exit(1);
    }
    return block;
}

static void touch(void *block, size_t size) {
    for (size_t at = 0; at < size; at += 4096)
        ((volatile char *)block)[at] = 1;
}

/* Work that asks for nothing, so that no share of time is all of it. */
static void work(unsigned rounds) {
    static volatile uint64_t sink;
    uint64_t value = 88172645463325252u;
    for (unsigned i = 0; i < rounds * 400000; i++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    sink = value;
    (void)sink;
}

static void started(pthread_t *thread, void *(*run)(void *), void *argument) {
    if (pthread_create(thread, NULL, run, argument) != 0) {
        fputs("patients: no thread\n", stderr);
        exit(1);
    }
}

/* --- time */

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
    started(&thread, grows, NULL);
    pthread_join(thread, NULL);
}

static void first_touch(void) {
    void *all = asked(768 * (size_t)MIB);
    touch(all, 768 * (size_t)MIB);
    work(20);
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
        started(&threads[i], mallocs, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
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
    started(&thread, frees, NULL);
    for (int i = 0; i < HANDED; i++) {
        void *block = asked(100);
        while (atomic_load_explicit(&slots[i % SLOTS], memory_order_relaxed) != NULL)
            sched_yield();
        atomic_store_explicit(&slots[i % SLOTS], block, memory_order_release);
    }
    pthread_join(thread, NULL);
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

/* --- memory */

static void **many(size_t count, size_t size) {
    void **blocks = asked(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = asked(size);
        memset(blocks[i], 1, size);
    }
    return blocks;
}

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
    enum { COUNT = 400 * KIB };
    void **blocks = many(COUNT, 200);
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 16 != 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    work(1500);
}

static pthread_barrier_t full, over;

static void *fills_arena(void *unused) {
    void **blocks = many(12 * KIB, 1000);
    void *pin = asked(1000);
    pthread_barrier_wait(&full);
    for (size_t i = 0; i < 12 * KIB; i++)
        free(blocks[i]);
    pthread_barrier_wait(&over);
    free(pin);
    free(blocks);
    return unused;
}

static void arena_bloat(void) {
    enum { THREADS = 12 };
    pthread_t threads[THREADS];
    pthread_barrier_init(&full, NULL, THREADS);
    pthread_barrier_init(&over, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        started(&threads[i], fills_arena, NULL);
    work(2000);
    pthread_barrier_wait(&over);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
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

/* --- well */

static void healthy(void) {
    enum { BLOCKS = 1000 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < 3000; i++) {
        for (int j = 0; j < BLOCKS; j++)
            blocks[j] = asked((size_t)(16 + j));
        work(1);
        for (int j = 0; j < BLOCKS; j++)
            free(blocks[j]);
    }
}

static void computes(void) { work(1500); }

static const struct {
    const char *name;
    void (*run)(void);
} patients[] = {
    {"mapping-churn", mapping_churn},
    {"trim-churn", trim_churn},
    {"mprotect-growth", mprotect_growth},
    {"first-touch-faults", first_touch},
    {"huge-pages-missing", huge_pages_missing},
    {"lock-contention", lock_contention},
    {"remote-free-pingpong", remote_free},
    {"quadratic-realloc", quadratic_realloc},
    {"calloc-clearing", calloc_clearing},
    {"retention-after-peak", retention},
    {"pinned-top-fragmentation", pinned_top},
    {"slab-fragmentation", slab_fragmentation},
    {"arena-bloat", arena_bloat},
    {"leak", leak},
    {"healthy", healthy},
    {"healthy-computes", computes},
};

int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof patients / sizeof patients[0]; i++) {
        if (argc == 2 && strcmp(argv[1], patients[i].name) == 0) {
            patients[i].run();
            return 0;
        }
    }
    fputs("usage: patients SYMPTOM, one of:\n", stderr);
    for (size_t i = 0; i < sizeof patients / sizeof patients[0]; i++)
        fprintf(stderr, "  %s\n", patients[i].name);
    return 2;
}
