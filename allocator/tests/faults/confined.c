/* A program that was started under a filter it does not know: it allocates, trims, and frees enough that somebody
 * would like to return memory while it sleeps. With one thread nobody comes, since that would take a call that such
 * a program never made; with several, started under the same filter, somebody does: unless it is root's and static, since then that thread would
 * stay root's when the program gives root up, unseen, and can be confined by no filter of its own.
 *
 *   confined alone|threads|unfiltered */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/auxv.h>

#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { THREADS = 3, FIELD = 8000, FIELD_BYTES = 1500, SPARED = 64, STEPS = 3000, TABLE = 64, BUSY_MS = 1500 };

static unsigned char *field[FIELD];
static atomic_bool done;

static void work(uint64_t random) {
    void *table[TABLE] = {NULL};
    for (size_t i = 0; i < STEPS; i++) {
        size_t kind = pattern_below(&random, 1000), at = pattern_below(&random, TABLE);
        size_t bits = kind < 900 ? 4 + pattern_below(&random, 10) : kind < 998 ? 14 + pattern_below(&random, 8) : 28;
        size_t size = 1 + pattern_below(&random, (size_t)1 << bits);
        table[at] = kind % 2 == 0 ? realloc(table[at], size) : (free(table[at]), calloc(1, size));
        EXPECT(table[at] != NULL, "no block of %zu bytes", size);
        memset(table[at], 1, size < 4096 ? size : 4096);
        if (i % 1000 == 0) {
            (void)freestone_purge();
        }
    }
    for (size_t at = 0; at < TABLE; at++) {
        free(table[at]);
    }
}

static void *in_thread(void *argument) {
    work((uintptr_t)argument);
    while (!atomic_load(&done)) {
        free(unseen(malloc(100)));
        tasks_sleep(20);
    }
    return NULL;
}

static void fill_field(void) {
    for (size_t i = 0; i < FIELD; i++) {
        field[i] = malloc(FIELD_BYTES);
        EXPECT(field[i] != NULL, "malloc failed");
        pattern_fill(field[i], 0, FIELD_BYTES, i);
    }
}

static void thin_out_field(void) {
    for (size_t i = 0; i < FIELD; i++) {
        if (i % SPARED != 0) {
            free(field[i]);
        }
    }
}

static void check_field(void) {
    for (size_t i = 0; i < FIELD; i += SPARED) {
        EXPECT(pattern_mismatch(field[i], FIELD_BYTES, i) == SIZE_MAX, "block %zu has changed", i);
        free(field[i]);
    }
}

/* Works a little until at most so much is resident, or it has taken too long. */
static size_t idle(size_t most_kib, long milliseconds) {
    size_t left = resident_kib();
    for (long end = tasks_clock() + milliseconds; left > most_kib && tasks_clock() < end; tasks_sleep(25)) {
        void *block[300];
        for (size_t i = 0; i < 300; i++) {
            block[i] = malloc(100);
        }
        for (size_t i = 0; i < 300; i++) {
            free(block[i]);
        }
        left = resident_kib();
    }
    return left;
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: confined alone|threads|unfiltered");
    bool alone = strcmp(arguments[1], "alone") == 0;
    bool unfiltered = strcmp(arguments[1], "unfiltered") == 0;
    bool kept = alone || (!unfiltered && getauxval(AT_BASE) == 0 && getauxval(AT_EUID) == 0);
    pthread_t thread[THREADS];
    size_t threads = alone ? 0 : THREADS;
    for (uintptr_t t = 0; t < threads; t++) {
        EXPECT(pthread_create(&thread[t], NULL, in_thread, (void *)(t + 2)) == 0, "no thread");
    }
    work(1);
    (void)freestone_purge();
    size_t before = resident_kib();
    fill_field();
    size_t full = resident_kib();
    thin_out_field();
    if (kept) {
        (void)idle(0, BUSY_MS);
        EXPECT(tasks_count() == 1 + threads, "%zu threads in a program that has %zu and is under a filter",
               tasks_count(), 1 + threads);
    } else {
        size_t wanted = before + (full - before) * 6 / 10;
        size_t left = idle(wanted, IDLE_MS);
        EXPECT(left <= wanted, "of %zu KiB over %zu there are still %zu after a rest", full - before, before,
               left - before);
    }
    check_field();
    work(3);
    atomic_store(&done, true);
    for (size_t t = 0; t < threads; t++) {
        pthread_join(thread[t], NULL);
    }
    return 0;
}
