/* A magazine: an array of pointers to free blocks of one size class, used as a stack. Leaf.
 *
 *     word  0..6           bottom        bottom+1 ................ 127
 *          [header]  ...   [none]        [block] [block] [ free slots ]
 *                                                   ^ top
 *
 * A kibibyte at a multiple of a kibibyte, so that its end is told from the address alone: a push that would land on
 * a multiple of a kibibyte finds the magazine full. Below the lowest slot lies what is no block, by which a pop finds the
 * magazine empty: it is not aligned as blocks are. The same test stops a pointer that is not either, and was freed.
 * Neither test loads a count. A smaller capacity is a higher bottom. No block is written to. */
#ifndef FREESTONE_MAGAZINE_H
#define FREESTONE_MAGAZINE_H

#include "size_class.h"

enum {
    MAGAZINE_BYTES = 1024,
    MAGAZINE_WORDS = MAGAZINE_BYTES / 8,
    MAGAZINE_MOST = 120, /* blocks; leaves a cache line for the header and what is no block */
};

union magazine {
    struct {
        union magazine *next; /* in a depot or among the spare ones */
        uint32_t bottom;      /* number of the word that holds MAGAZINE_NONE */
        uint32_t size_class;  /* while it is on its way to other heaps */
        bool folded;          /* see magazine_fold */
        uint8_t planted;      /* number of the word at which it ends early; 0: it does not */
        uint16_t in_pool;     /* in the first of a page: how many of the page are in the pool, see magazine_pool.c */
        void *displaced;      /* what belongs there */
        union magazine *prev; /* in the pool */
    };
    void *word[MAGAZINE_WORDS];
};
_Static_assert(sizeof(void *) == 8, "a magazine's geometry is that of 64-bit pointers");
_Static_assert(sizeof(union magazine) == MAGAZINE_BYTES, "a magazine's end is told from its address");
_Static_assert(MAGAZINE_WORDS - 1 - MAGAZINE_MOST > 5, "the header lies below the bottom, and below the word under it");

/* No block: what lies below the lowest one. */
#define MAGAZINE_NONE ((void *)1)

/* What is aligned as blocks are. All else in a magazine is MAGAZINE_NONE, or was freed and is no block. */
static inline bool magazine_is_block(const void *word) { return ((uintptr_t)word & ((1 << CLASS_STEP_BITS) - 1)) == 0; }

/* The magazine that `top` points into. */
static inline union magazine *magazine_of(void **top) {
    return (union magazine *)((uintptr_t)top & ~(uintptr_t)(MAGAZINE_BYTES - 1));
}

static inline bool magazine_is_past_end(void **slot) { return ((uintptr_t)slot & (MAGAZINE_BYTES - 1)) == 0; }

static inline bool magazine_is_empty(void **top) { return *top == MAGAZINE_NONE; }

static inline bool magazine_is_full(void **top) { return magazine_is_past_end(top + 1); }

/* Makes a magazine empty with room for `capacity` blocks, 1 to MAGAZINE_MOST; returns its top. */
static inline void **magazine_clear(union magazine *magazine, unsigned capacity) {
    magazine->bottom = (uint32_t)(MAGAZINE_WORDS - 1 - capacity);
    magazine->folded = false;
    magazine->word[magazine->bottom] = MAGAZINE_NONE;
    return &magazine->word[magazine->bottom];
}

static inline void **magazine_full_top(union magazine *magazine) { return &magazine->word[MAGAZINE_WORDS - 1]; }

static inline unsigned magazine_capacity(const union magazine *magazine) {
    return MAGAZINE_WORDS - 1 - magazine->bottom;
}

/* Takes the newest block out of a full magazine of two or more, which is full all the same: the oldest lies where that was, and the
 * bottom is higher by one. For a magazine that is put aside while its newest block has to stay in sight. */
static inline void *magazine_fold(void **top) {
    union magazine *magazine = magazine_of(top);
    void *newest = *top;
    magazine->bottom++;
    *top = magazine->word[magazine->bottom];
    magazine->word[magazine->bottom] = MAGAZINE_NONE;
    magazine->folded = true;
    return newest;
}

/* The top of a full magazine that is loaded, its blocks in the order in which they were pushed. */
static inline void **magazine_unfold(void **top) {
    union magazine *magazine = magazine_of(top);
    if (likely(!magazine->folded)) {
        return top;
    }
    magazine->folded = false;
    magazine->word[magazine->bottom] = *top;
    magazine->bottom--;
    magazine->word[magazine->bottom] = MAGAZINE_NONE;
    return top - 1;
}

/* An early end below the `depth` newest blocks of a loaded magazine that has more: whoever pops as far finds it empty. */
static inline void magazine_plant(void **top, unsigned depth) {
    union magazine *magazine = magazine_of(top);
    magazine->planted = (uint8_t)((unsigned)(top - magazine->word) - depth);
    magazine->displaced = magazine->word[magazine->planted];
    magazine->word[magazine->planted] = MAGAZINE_NONE;
}

/* ... is there no more. */
static inline void magazine_lift(void **top) {
    union magazine *magazine = magazine_of(top);
    if (magazine->planted != 0) {
        magazine->word[magazine->planted] = magazine->displaced;
        magazine->planted = 0;
    }
}

static inline bool magazine_ends_early(void **top) {
    const union magazine *magazine = magazine_of(top);
    return magazine->planted != 0 && top == &magazine->word[magazine->planted];
}

/* Blocks it holds. */
static inline unsigned magazine_count(void **top) {
    const union magazine *magazine = magazine_of(top);
    return (unsigned)(top - &magazine->word[magazine->bottom]);
}

#endif
