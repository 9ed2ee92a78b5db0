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

/* A slab of the class for heap number `heap`, all blocks free. `dense` tells that it will soon be filled. 0 when memory
 * is out. */
uint32_t slab_make(unsigned class, unsigned heap, bool dense);

/* Gives an entirely free slab's memory back to the arena. arena_age is the caller's to call. */
void slab_unmake(uint32_t slab);

/* Takes up to `want` free blocks, lowest addresses first, and stores them downwards: blocks[-1], blocks[-2], ...
 * Stored so, a stack whose top is the lowest slot hands out ascending addresses. Returns how many. */
unsigned slab_take(uint32_t slab, void **blocks, unsigned want);

/* Purges the pages of the slab whose blocks are all free, provided nothing was taken from it since the last call;
 * returns their bytes. *busy tells that something was. */
size_t slab_clean(uint32_t slab, bool *busy);

/* The slab's bitmap. A slice has room for 4096 bits, most classes need an eighth of that: the bitmaps of neighbouring
 * slabs start in different eighths, because cache lines that are all 512 bytes apart share an eighth of a cache's sets. */
static inline unsigned slab_bitmap_lines(unsigned class) { /* of 64 bytes, a power of two */
    return class < 1 ? 8 : class < 3 ? 4 : class < 7 ? 2 : 1;
}

static inline uint64_t *slab_bitmap(uint32_t slab, unsigned class) {
    unsigned lines = slab_bitmap_lines(class);
    return arena_bitmap(slab) + (size_t)(slab % (8 / lines)) * lines * 8;
}

/* The first slice of the slab that holds the block. The block's tag has been seen to be a slab's. */
static inline uint32_t slab_of(const void *block) { return arena_span(arena_slice(block))->first; }

/* Stops the program: one of at[0], at[-1], ... is no block in use of the slab. */
_Noreturn void slab_misuse(uint32_t slab, void **at, unsigned count);

/* What giving blocks back needs to know of a class, and the arena's addresses; worked out once for many blocks, so that a
 * loop over them reads no variable that its own stores might have changed. */
struct slab_shape {
    uintptr_t base;      /* of the arena */
    struct span *spans;  /* ... its descriptors */
    char *bitmaps;       /* ... and bitmaps */
    size_t size;         /* of a block */
    uint64_t reciprocal; /* of that */
    uint32_t slices;     /* in a slab */
    uint32_t blocks;     /* in it */
    uint32_t skew_mask;  /* slab_bitmap: 8 / lines - 1 */
    uint32_t skew_shift; /* ... times 2^this bytes, of that many lines */
};

static inline struct slab_shape slab_shape(unsigned class) {
    unsigned lines = slab_bitmap_lines(class);
    return (struct slab_shape){
        window.base,         arena_spans,         arena_bitmaps, class_bytes[class],    class_reciprocals[class],
        class_slices[class], class_blocks(class), 8 / lines - 1, 6 + bits_lowest(lines)};
}

static inline uint32_t slab_shape_slice(const struct slab_shape *shape, const void *block) {
    return (uint32_t)(((uintptr_t)block - shape->base) >> SLICE_BITS);
}

/* The first slice of the slab that a slice is in. */
static inline uint32_t slab_shape_slab(const struct slab_shape *shape, uint32_t slice) {
    return shape->slices == 1 ? slice : shape->spans[slice].first;
}

static inline uint64_t *slab_shape_word(const struct slab_shape *shape, uint32_t slab, size_t number) {
    char *bitmap =
        shape->bitmaps + (size_t)slab * BITMAP_BYTES + ((size_t)(slab & shape->skew_mask) << shape->skew_shift);
    return (uint64_t *)(void *)bitmap + number / 64;
}

/* The block's bit, and its word of the bitmap; stops the program when no block starts there. */
static inline uint64_t *slab_word(uint32_t slab, const struct slab_shape *shape, void **at, size_t *number) {
    size_t offset = (uintptr_t)*at - shape->base - ((uintptr_t)slab << SLICE_BITS);
    *number = offset * shape->reciprocal >> 32;
    if (unlikely(*number * shape->size != offset || *number >= shape->blocks)) {
        slab_misuse(slab, at, 1);
    }
    return slab_shape_word(shape, slab, *number);
}

/* Makes the block free. */
static inline void slab_give_one(uint32_t slab, const struct slab_shape *shape, void **at) {
    size_t number;
    uint64_t *word = slab_word(slab, shape, at, &number);
    uint64_t bit = UINT64_C(1) << (number % 64);
    if (unlikely((*word & bit) != 0)) {
        slab_misuse(slab, at, 1);
    }
    *word |= bit;
    struct span *span = &shape->spans[slab];
    span->summary |= UINT64_C(1) << (number / 64);
    span->free_blocks++;
}

/* True when the block at[-1] is a neighbour of at[0], as blocks freed in the order of their addresses or its reverse are. */
static inline bool slab_is_run(const struct slab_shape *shape, void **at) {
    size_t step = (uintptr_t)at[-1] - (uintptr_t)at[0];
    return step == shape->size || step + shape->size == 0;
}

/* Makes free the run of neighbours at[0], at[-1], ..., upwards or downwards, as far as one word of the bitmap goes; returns
 * how many, at least 1. */
unsigned slab_give_run(uint32_t slab, const struct slab_shape *shape, void **at);

/* Brings what giving the block will need closer. Its class's slabs are of one slice. Inlined always: GCC 12 takes a function
 * that does nothing but prefetch for one without effect, and drops the call. */
static INLINE_ALWAYS void slab_prefetch(const void *block, const struct slab_shape *shape) {
    uint32_t slab = slab_shape_slice(shape, block);
    size_t number = ((uintptr_t)block & (SLICE_BYTES - 1)) * shape->reciprocal >> 32;
    __builtin_prefetch(&shape->spans[slab], 1);
    __builtin_prefetch(slab_shape_word(shape, slab, number), 1);
}

#endif
