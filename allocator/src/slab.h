/* A slab: a span cut into equal blocks, with a bitmap of its free blocks out of band.
 *
 *   span.summary  one bit per bitmap word: not 0        word w, bit b  ->  block 64 * w + b  ->  address base + size * it
 *
 * Nothing is ever written into a free block. Blocks come out in address order. A set bit that is to be set again is a
 * double free; an address that is not a block's start is an interior pointer: both stop the program here.
 *
 * Invariants: free_blocks == set bits in the bitmap; summary bit w set exactly when word w != 0.
 * All functions need the lock of the heap that owns the slab. */
#ifndef FREESTONE_SLAB_H
#define FREESTONE_SLAB_H

#include "arena.h"

/* A slab of the class for heap number `heap`, all blocks free. 0 when memory is out. */
uint32_t slab_make(unsigned class, unsigned heap);

/* Gives an entirely free slab's memory back to the arena. arena_age is the caller's to call. */
void slab_unmake(uint32_t slab);

/* Takes up to `want` free blocks, lowest addresses first, and stores them downwards: blocks[-1], blocks[-2], ...
 * Stored so, a stack whose top is the lowest slot hands out ascending addresses. Returns how many. */
unsigned slab_take(uint32_t slab, void **blocks, unsigned want);

/* Makes free the blocks at top[0], top[-1], ... as far as they lie in this slab, at most down to a NULL. Returns how
 * many: at least 1 when slab_of(top[0]) is the slab. */
unsigned slab_give(uint32_t slab, void **top);

/* The first slice of the slab that holds the block. The block's tag has been seen to be a slab's. */
static inline uint32_t slab_of(const void *block) { return arena_span(arena_slice(block))->first; }

#endif
