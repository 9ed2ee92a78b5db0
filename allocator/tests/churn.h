/* Blocks of all sizes taken, grown and freed at random, for programs that are to live on where something else is made
 * difficult for them. */
#ifndef FREESTONE_TESTS_CHURN_H
#define FREESTONE_TESTS_CHURN_H

#include "entry.h"
#include "expect.h"
#include "pattern.h"

enum { CHURN_BLOCKS = 200 };

struct churn {
    uint64_t random;
    unsigned most_bits; /* of the size of one block in a thousand */
    void *held[CHURN_BLOCKS];
};

static inline void churn_step(struct churn *churn) {
    size_t kind = pattern_below(&churn->random, 1000), at = pattern_below(&churn->random, CHURN_BLOCKS);
    size_t bits = kind < 900   ? 4 + pattern_below(&churn->random, 9)
                  : kind < 999 ? 13 + pattern_below(&churn->random, 8)
                               : churn->most_bits;
    size_t size = 1 + pattern_below(&churn->random, (size_t)1 << bits);
    void **held = &churn->held[at];
    if (kind % 5 == 0) {
        *held = realloc(*held, size);
    } else {
        free(*held);
        *held = kind % 2 == 0 ? calloc(1, size) : malloc(size);
    }
    EXPECT(*held != NULL, "no block of %zu bytes", size);
    *(volatile char *)*held = 1;
}

static inline void churn_end(struct churn *churn) {
    for (size_t at = 0; at < CHURN_BLOCKS; at++) {
        free(churn->held[at]);
    }
}

#endif
