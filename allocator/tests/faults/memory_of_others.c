/* Memory is out and the kernel gives none: what other threads have freed serves whoever asks, of the same size and
 * of any other, wherever it lies. NULL only when nothing of it is left.
 *
 *   memory_of_others LIMIT-BYTES all|most
 *
 * LIMIT-BYTES of address space are in force already. all: every block is free again when somebody asks; most: one
 * block in sixteen is not, and one thread keeps all that it has. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { THREADS = 5, HELD_SHARE = 16, SIZES = 7 };

static const size_t sizes[SIZES] = {24, 120, 1000, 5000, 20000, 100000, 400000};

struct block {
    struct block *next;
};

static pthread_barrier_t together;
static bool most_only;
static size_t limit, size_now, taken[THREADS];
static struct block *all[THREADS];

static struct block *take(size_t size, struct block *next) {
    errno = 0;
    struct block *block = malloc(size);
    if (block == NULL) {
        EXPECT(errno == ENOMEM, "malloc(%zu) failed with errno %d", size, errno);
        return NULL;
    }
    block->next = next;
    return block;
}

static void exhaust(size_t self) {
    struct block *block;
    taken[self] = 0;
    while ((block = take(size_now, all[self])) != NULL) {
        all[self] = block;
        taken[self]++;
    }
}

/* Frees its blocks but each `spared`-th; 0 spares none. Returns how many. */
static size_t release(size_t self, size_t spared) {
    struct block *kept = NULL;
    size_t freed = 0, i = 0;
    for (struct block *block = all[self]; block != NULL; i++) {
        struct block *next = block->next;
        if (spared != 0 && i % spared == 0) {
            block->next = kept;
            kept = block;
        } else {
            free(block);
            freed++;
        }
        block = next;
    }
    all[self] = kept;
    return freed;
}

/* `bytes` in blocks of a size, all of which must be had, and are freed again. */
static void demand(size_t size, size_t bytes, size_t self, const char *when) {
    struct block *some = NULL;
    size_t wanted = bytes / size > 0 ? bytes / size : 1;
    for (size_t i = 0; i < wanted; i++) {
        struct block *block = take(size, some);
        EXPECT(block != NULL, "thread %zu: no memory for block %zu of %zu, of %zu bytes, %s", self, i, wanted, size,
               when);
        some = block;
    }
    while (some != NULL) {
        struct block *next = some->next;
        free(some);
        some = next;
    }
}

static void *work(void *argument) {
    size_t self = (uintptr_t)argument;
    for (size_t s = 0; s < SIZES; s++) {
        pthread_barrier_wait(&together);
        exhaust(self);
        pthread_barrier_wait(&together);
        /* most: one thread keeps what it has and has nothing to spare; the others free most, here and there. */
        size_t freed = self == s % THREADS && most_only ? 0 : release(self, most_only ? HELD_SHARE : 0);
        pthread_barrier_wait(&together);
        taken[self] = freed;
        pthread_barrier_wait(&together);
        if (self == s % THREADS && most_only) {
            size_t free_blocks = 0;
            for (size_t t = 0; t < THREADS; t++) {
                free_blocks += taken[t];
            }
            if (free_blocks >= 2) { /* it may have been the one that got nearly all */
                demand(size_now, free_blocks / 2 * size_now, self, "when others had freed twice as much of that size");
            }
        }
        pthread_barrier_wait(&together);
        (void)release(self, 0);
        pthread_barrier_wait(&together);
        /* Nobody holds anything: each in turn is served with any size. */
        for (size_t turn = 0; turn < THREADS; turn++) {
            for (size_t other = 0; turn == self && other < SIZES; other++) {
                demand(sizes[other], limit / 8, self, "when nobody held any");
            }
            pthread_barrier_wait(&together);
        }
    }
    return NULL;
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 3, "usage: memory_of_others LIMIT-BYTES all|most");
    most_only = strcmp(arguments[2], "most") == 0;
    limit = strtoul(arguments[1], NULL, 10);
    pthread_barrier_init(&together, NULL, THREADS + 1);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    pthread_t thread[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&thread[t], &small, work, (void *)t) == 0, "no thread");
    }
    for (size_t s = 0; s < SIZES; s++) {
        size_now = sizes[s];
        for (size_t wait = 0; wait < 6 + THREADS; wait++) {
            pthread_barrier_wait(&together);
        }
    }
    for (size_t t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
    }
    return 0;
}
