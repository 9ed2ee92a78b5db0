/* A short program that does all that makes the heap call the kernel: blocks of every kind taken, grown, shrunk and
 * given by three threads, trims, a rest in which memory goes back by itself. Any of those calls may fail. Then a
 * request gives NULL and ENOMEM or is served, no block changes, and what calloc gives is zero. Once nothing fails
 * any more, every request is served and memory goes back as ever.
 *
 *   refused_run [kept]   kept: memory need not go back by itself; it does when asked */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "pattern_ends.h"
#include "refused_run.h"
#include "serving.h"
#include "traced.h"

enum {
    THREADS = 2,
    TABLE = 96,
    STEPS = 500,
    FIELD = 6000,
    FIELD_BYTES = 1500,
    SPARED = 64,
    LOOKED_AT = 128 * 1024,
    PATIENCE_SECONDS = 100,
};

struct block {
    unsigned char *address;
    size_t size;
    uint64_t id;
};

static atomic_bool may_fail = true;
static struct block tables[THREADS + 1][TABLE];
static unsigned char *field[FIELD];

static void refused(size_t size) {
    EXPECT(errno == ENOMEM, "a request of %zu bytes was refused with errno %d", size, errno);
    EXPECT(atomic_load(&may_fail), "a request of %zu bytes is refused after all is well again", size);
}

static void inspect(const struct block *block) {
    size_t mismatch = pattern_mismatch_ends(block->address, block->size, block->size, LOOKED_AT, block->id);
    EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed", mismatch, block->size);
}

static size_t any_size(uint64_t *random) {
    size_t kind = pattern_below(random, 200);
    if (kind == 0) { /* a mapping of its own */
        return ((size_t)130 << 20) + pattern_below(random, (size_t)64 << 20);
    }
    size_t bits = kind < 120   ? 4 + pattern_below(random, 8)
                  : kind < 190 ? 12 + pattern_below(random, 6)
                               : 18 + pattern_below(random, 5);
    return 1 + pattern_below(random, (size_t)1 << bits);
}

static void take(struct block *block, uint64_t *random, uint64_t id) {
    size_t size = any_size(random), how = pattern_below(random, 4);
    errno = 0;
    unsigned char *address = how == 0   ? calloc(1, size)
                             : how == 1 ? memalign((size_t)16 << pattern_below(random, 13), size)
                                        : malloc(size);
    if (address == NULL) {
        refused(size);
        return;
    }
    if (how == 0) {
        size_t dirty = pattern_not_zero(address, pattern_head(size, LOOKED_AT));
        EXPECT(dirty == SIZE_MAX, "calloc(%zu): byte %zu is not zero", size, dirty);
    }
    *block = (struct block){address, size, id};
    pattern_fill_ends(address, size, LOOKED_AT, id);
}

static void resize(struct block *block, uint64_t *random, uint64_t id) {
    bool grows = pattern_below(random, 2) == 0;
    size_t size = grows && block->size < (200u << 20) ? block->size + block->size / 2 + 1 : any_size(random);
    errno = 0;
    unsigned char *moved = realloc(block->address, size);
    if (moved == NULL) {
        refused(size);
        inspect(block);
        return;
    }
    size_t mismatch = pattern_mismatch_ends(moved, block->size, size, LOOKED_AT, block->id);
    EXPECT(mismatch == SIZE_MAX, "realloc from %zu to %zu changed byte %zu", block->size, size, mismatch);
    *block = (struct block){moved, size, id};
    pattern_fill_ends(moved, size, LOOKED_AT, id);
}

static void give(struct block *block) {
    inspect(block);
    errno = 0;
    free(block->address);
    EXPECT(errno == 0, "free set errno to %d", errno);
    block->address = NULL;
}

/* The same at each call with the same seed, but for what is refused. */
static void work(struct block *table, uint64_t seed) {
    for (uint64_t i = 0; i < STEPS; i++) {
        struct block *block = &table[pattern_below(&seed, TABLE)];
        if (block->address == NULL) {
            take(block, &seed, seed ^ i);
        } else if (pattern_below(&seed, 4) == 0) {
            inspect(block);
            resize(block, &seed, seed ^ i);
        } else {
            give(block);
        }
        if (i % 300 == 299) {
            (void)malloc_trim(0);
        }
    }
}

static void *in_thread(void *argument) {
    size_t self = (uintptr_t)argument;
    work(tables[self], self);
    return NULL;
}

static void work_together(void) {
    pthread_t thread[THREADS];
    bool runs[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
        int error = pthread_create(&thread[t], NULL, in_thread, (void *)t);
        runs[t] = error == 0;
        EXPECT(runs[t] || atomic_load(&may_fail), "no thread, error %d, after all is well again", error);
    }
    work(tables[THREADS], THREADS);
    for (size_t t = 0; t < THREADS; t++) {
        EXPECT(!runs[t] || pthread_join(thread[t], NULL) == 0, "pthread_join failed");
    }
}

static void fill_field(void) {
    for (size_t i = 0; i < FIELD; i++) {
        errno = 0;
        field[i] = malloc(FIELD_BYTES);
        if (field[i] == NULL) {
            refused(FIELD_BYTES);
            continue;
        }
        pattern_fill(field[i], 0, FIELD_BYTES, i);
    }
}

/* Frees all but each `spared`-th block. */
static void thin_out_field(size_t spared) {
    for (size_t i = 0; i < FIELD; i++) {
        if (spared < FIELD && i % spared == 0) {
            continue;
        }
        EXPECT(field[i] == NULL || pattern_mismatch(field[i], FIELD_BYTES, i) == SIZE_MAX, "a block has changed");
        free(field[i]);
        field[i] = NULL;
    }
}

/* A program that works a little now and then, as nearly all that idle do. */
static void rest(size_t most_kib, long milliseconds) {
    for (long end = tasks_clock() + milliseconds; tasks_clock() < end && resident_kib() > most_kib; tasks_sleep(25)) {
        void *block[400];
        for (size_t i = 0; i < 400; i++) {
            block[i] = malloc(100);
            EXPECT(block[i] != NULL || atomic_load(&may_fail), "malloc(100) is refused after all is well again");
        }
        for (size_t i = 0; i < 400; i++) {
            free(block[i]);
        }
    }
}

int main(int count, char **arguments) {
    bool kept = count > 1 && strcmp(arguments[1], "kept") == 0;
    alarm(PATIENCE_SECONDS); /* whoever waits for what was refused waits for ever */
    require_serving();
    work_together();
    fill_field();
    thin_out_field(SPARED);
    rest(0, 800);
    thin_out_field(FIELD);
    work_together();

    (void)traced_say(REFUSED_RUN_ENOUGH);
    atomic_store(&may_fail, false);
    work_together();
    for (size_t t = 0; t <= THREADS; t++) {
        for (size_t b = 0; b < TABLE; b++) {
            if (tables[t][b].address != NULL) {
                give(&tables[t][b]);
            }
        }
    }
    (void)malloc_trim(0);
    size_t before = resident_kib();
    fill_field();
    size_t full = resident_kib();
    EXPECT(full >= before + 6000, "%zu KiB and a field of 9 MB are %zu", before, full);
    thin_out_field(SPARED); /* what lies free between those that are left is the keeper's to return */
    if (!kept) {
        rest(before + (full - before) / 2, IDLE_MS);
        size_t left = resident_kib();
        EXPECT(left <= before + (full - before) / 2, "of %zu KiB over %zu there are still %zu after a rest",
               full - before, before, left - before);
    }
    thin_out_field(FIELD);
    size_t left = SIZE_MAX; /* a huge page more may be there */
    for (int i = 0; i < 20 && left > before + 3072;
         i++) { /* what the keeper has in its hands just then goes back after that */
        tasks_sleep(i * 10);
        (void)malloc_trim(0);
        left = resident_kib();
    }
    EXPECT(left <= before + 3072, "%zu KiB, and before the same was allocated there were %zu", left, before);
    return 0;
}
