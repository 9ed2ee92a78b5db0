/* both.c: patients that have two things, named by both. */
#define _GNU_SOURCE
#include "patient.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Messages get a mapping each, and a record of each is kept. */
static void churns_and_leaks(void) {
    mallopt(M_TRIM_THRESHOLD, 64 * MIB);
    for (int i = 0; i < 1200; i++) {
        void *message = asked(1 * MIB);
        touch(message, 1 * MIB);
        for (int j = 0; j < 128; j++)
            memset(asked(200), 1, 200);
        for (int j = 0; j < 128; j++)
            free(asked(300));
        free(message);
    }
}

/* Buffers are cleared again and again beside a heap that is full of holes. */
static void clears_over_holes(void) {
    riddled(300 * KIB, 200);
    free(asked(16 * MIB)); /* from now on blocks of its size lie in the heap */
    for (int i = 0; i < 6000; i++) {
        char *buffer = calloc(1, 2 * MIB);
        if (buffer == NULL)
            give_up("no memory");
        *(volatile char *)buffer = 1;
        free(buffer);
    }
}

/* A list that grows by a few bytes at a time beside others, and then a heap that keeps what it had. */
static void *grows_and_keeps(void *unused) {
    enum { LISTS = 30, BLOCKS = 10 * KIB };
    char *lists[LISTS] = {NULL};
    for (size_t size = 64; size < 64 * KIB; size += 48) {
        for (size_t i = 0; i < LISTS; i++) {
            if ((lists[i] = realloc(lists[i], size)) == NULL)
                give_up("no memory");
            lists[i][size - 1] = 1;
        }
    }
    void **blocks = many(BLOCKS, 1000);
    void *pin = asked(1000);
    free_many(blocks, BLOCKS);
    meet();
    meet();
    for (size_t i = 0; i < LISTS; i++)
        free(lists[i]);
    free(pin);
    return unused;
}

static void reallocs_in_arenas(void) { crowd(8, grows_and_keeps, 400); }

const struct patient patients_in_both[] = {
    {"mapping-churn+leak", churns_and_leaks},
    {"calloc-clearing+slab-fragmentation", clears_over_holes},
    {"quadratic-realloc+arena-bloat", reallocs_in_arenas},
    {NULL, NULL},
};
