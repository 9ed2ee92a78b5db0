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
#include "zeros.h"

/* A slab of the class for heap number `heap`, all blocks free. `dense` tells that it will soon be filled. 0 when memory
 * is out. Needs no lock: nobody knows of it yet. */
uint32_t slab_make(unsigned class, unsigned heap, bool dense);

/* From now on its slices tell whose they are. Under the heap's lock, together with all by which the heap knows it: whoever goes by the
 * tags asks again under that lock. */
void slab_publish(uint32_t slab);

/* Gives an entirely free slab's memory back to the arena, which goes on knowing what of it is clean. arena_age is the caller's to call. */
void slab_unmake(uint32_t slab);

/* Takes up to `want` free blocks, lowest addresses first, and stores them downwards: blocks[-1], blocks[-2], ...
 * Stored so, a stack whose top is the lowest slot hands out ascending addresses. Returns how many. */
unsigned slab_take(uint32_t slab, void **blocks, unsigned want);

/* Takes blocks on pages that are in memory, and then others as far as the limit has room for their clean pages, which it charges. */
unsigned slab_take_charged(uint32_t slab, void **blocks, unsigned want);

/* Cleaning: the pages of a slab whose blocks are all free are purged, a piece at a time. Meanwhile the blocks on them are out of the bitmap,
 * so that the heap's lock may be free: nobody can take them, and the slab cannot go.
 *
 * Whether the slab is to be cleaned: something was given, and nothing was taken from it since the last call in that way, or all is to be cleaned.
 * *busy tells that something was taken. */
bool slab_begin_cleaning(uint32_t slab, enum cleaning cleaning, bool *busy);

struct slab_piece {
    uint32_t next;             /* block from which on to look for the next piece */
    uint32_t first, blocks;    /* lifted out of the bitmap */
    uint32_t page, pages;      /* to purge, from the slab's start */
    uint32_t unclean;          /* of these pages; the others were purged before, and still belong to free blocks */
};

/* Lifts the blocks of the next piece, whose zeroed description is the caller's. False when there is none, or blocks were taken meanwhile. */
bool slab_lift(uint32_t slab, enum cleaning cleaning, struct slab_piece *piece);

/* Purges it; the only one of these that needs no lock. False when the kernel refused. */
bool slab_purge(uint32_t slab, const struct slab_piece *piece);

/* Puts the blocks back; returns the bytes of pages that are clean now and were not. */
size_t slab_put_back(uint32_t slab, const struct slab_piece *piece, bool purged);

/* A slab lends while some of its blocks are joined to larger ones, of other classes: lend.c. */
static inline bool slab_lends(const void *block) {
    uint32_t tag;
    return tag_of(block, &tag) && tag_lends(tag);
}

/* Of a slab that lends: one bit for each block that is part of a lent one and not its first; beside the slab's bitmap, in the same room. Words of it
 * are read without the lock by whoever has a block of the slab: that block's bits do not change meanwhile. */
uint64_t *slab_tails(uint32_t slab);

/* A run of free blocks that is looked for, to be lent as one block. */
struct slab_run {
    uint32_t blocks, step; /* so many, the first one's number a multiple of this */
    uint32_t number; /* of the block from which on to look; then the run's first, or where to go on */
    bool purged; /* purged pages are taken again, as far as the limit has room: they are charged */
    size_t lack; /* the fewest bytes that the limit has no room for, of a run that was passed over; 0 for none */
};

/* Finds one, none of whose pages is purged unless it says so; at most *runs are looked at. */
bool slab_find_run(uint32_t slab, struct slab_run *run, unsigned *runs);

/* Whether the slab may have a run for the class, for all that is known of the last search; and notes that one has found none in all of it. */
bool slab_has_run(uint32_t slab, unsigned class);
void slab_note_searched(uint32_t slab, unsigned class);

/* Lends that run as one block. */
void *slab_lend(uint32_t slab, uint32_t number, uint32_t blocks);

/* Takes back a block that is one of the class, lent or not, of a slab that lends; returns of how many blocks it was. The last lent one gone, the slab
 * lends no longer. */
uint32_t slab_take_back(uint32_t slab, unsigned class, void *block);

/* Of a block in use of a slab that lends: its bytes, the class that it serves, and the slot of that. Without a lock. Stops the program if no block
 * starts there. */
size_t slab_lent_bytes(const void *block);
unsigned slab_lent_class(const void *block);
unsigned slab_lent_slot(const void *block);

/* What is zero of the block that slab_take takes next, of a slab with free blocks: all where it was never taken, and else the first run of
 * pages of it that are clean. Nothing of blocks smaller than CLASS_FRESH. */
struct zeros slab_next_zeros(uint32_t slab);

/* The first slice of the slab that holds the block. The block's tag has been seen to be a slab's. */
static inline uint32_t slab_of(const void *block) { return arena_span(arena_slice(block))->first; }

/* Stops the program: one of at[0], at[-1], ... is no block in use of the slab. */
_Noreturn void slab_misuse(uint32_t slab, void *const *at, unsigned count);

/* A slice has room for a bitmap of 4096 bits, most classes need an eighth of that: the bitmaps of neighbouring slabs start in
 * different eighths, because cache lines that are all 512 bytes apart share an eighth of a cache's sets. Bytes by which each
 * slab's starts further into its room than the last one's. */
static inline size_t slab_bitmap_step(unsigned class) {
    return class < 1 ? 512 : class < 3 ? 256 : class < 7 ? 128 : 64;
}

/* Where the slab's bitmap is, in bytes from arena_bitmaps. */
static inline size_t slab_bitmap_offset(uint32_t slab, size_t step) {
    return (size_t)slab * BITMAP_BYTES + slab * step % BITMAP_BYTES;
}

/* What giving blocks back needs to know of a class, and the arena's addresses; worked out once for many blocks, so that a
 * loop over them reads no variable that its own stores might have changed. */
struct slab_shape {
    uintptr_t base;      /* of the arena */
    struct span *spans;  /* ... its descriptors */
    char *bitmaps;       /* ... and bitmaps */
    size_t bitmap_step;  /* of the class: see slab_bitmap_offset */
    size_t size;         /* of a block */
    uint64_t reciprocal; /* of that */
    uint32_t slices;     /* in a slab */
    uint32_t blocks;     /* in it */
};

static inline struct slab_shape slab_shape(unsigned class) {
    return (struct slab_shape){window.base,         arena_spans,
                               arena_bitmaps,       slab_bitmap_step(class),
                               class_bytes[class],  class_reciprocals[class],
                               class_slices[class], class_blocks(class)};
}

static inline uint32_t slab_shape_slice(const struct slab_shape *shape, const void *block) {
    return (uint32_t)(((uintptr_t)block - shape->base) >> SLICE_BITS);
}

/* The first slice of the slab that a slice is in. */
static inline uint32_t slab_shape_slab(const struct slab_shape *shape, uint32_t slice) {
    return shape->slices == 1 ? slice : shape->spans[slice].first;
}

/* The block's number; stops the program when no block starts there. */
static INLINE_ALWAYS size_t slab_number(uint32_t slab, const struct slab_shape *shape, void *block) {
    size_t offset, number;
    bool starts;
    if (shape->slices == 1) {
        offset = (uintptr_t)block % SLICE_BYTES;
        number = offset * shape->reciprocal >> 32;
        starts = (uint32_t)(offset * shape->reciprocal) < shape->reciprocal; /* why: class_reciprocals */
    } else {
        offset = (uintptr_t)block - shape->base - ((uintptr_t)slab << SLICE_BITS);
        number = offset * shape->reciprocal >> 32;
        starts = number * shape->size == offset;
    }
    if (unlikely(!starts || number >= shape->blocks)) {
        slab_misuse(slab, &(void *){block}, 1);
    }
    return number;
}

/* Whether a block of the class starts at an address in a slab of the class. Needs no lock as long as the slab stays. */
static inline bool slab_starts(unsigned class, const void *block) {
    uint32_t reciprocal = class_reciprocals[class];
    if (class_slices[class] == 1) {
        return (uint32_t)((uintptr_t)block % SLICE_BYTES * reciprocal) < reciprocal; /* why: class_reciprocals */
    }
    size_t offset = (uintptr_t)block - (uintptr_t)arena_address(slab_of(block));
    return (offset * reciprocal >> 32) * class_bytes[class] == offset;
}

/* Makes the block free. False when others in its word of the bitmap were free before: it is not the slab's first, then. */
static INLINE_ALWAYS bool slab_give_one(uint32_t slab, const struct slab_shape *shape, void *block) {
    size_t number = slab_number(slab, shape, block);
    struct span *span = &shape->spans[slab];
    uint64_t *word = span->bitmap + number / 64;
    uint64_t before = *word, after = before | UINT64_C(1) << (number % 64);
    if (unlikely(after == before)) {
        slab_misuse(slab, &(void *){block}, 1);
    }
    *word = after;
    span->free_blocks++;
    if (likely(before != 0)) {
        return false;
    }
    span->summary |= UINT64_C(1) << (number / 64);
    return true;
}

/* True when the second block is a neighbour of the first, as blocks freed in the order of their addresses or its reverse are. */
static inline bool slab_is_run(const struct slab_shape *shape, const void *block, const void *next) {
    size_t step = (uintptr_t)next - (uintptr_t)block;
    return step == shape->size || step + shape->size == 0;
}

/* Makes free the run of neighbours at[0], at[-1], ..., upwards or downwards, as far as one word of the bitmap goes; returns
 * how many, at least 1. */
unsigned slab_give_run(uint32_t slab, void **at);

/* Brings what giving the block will need closer. The class's slabs are of one slice. Inlined always: GCC 12 takes a function
 * that does nothing but prefetch for one without effect, and drops the call. */
static INLINE_ALWAYS void slab_prefetch(const void *block, const struct slab_shape *shape) {
    uint32_t slab = slab_shape_slice(shape, block);
    size_t number = (uintptr_t)block % SLICE_BYTES * shape->reciprocal >> 32;
    __builtin_prefetch(&shape->spans[slab], 1);
    __builtin_prefetch(shape->bitmaps + slab_bitmap_offset(slab, shape->bitmap_step) + number / 64 * 8, 1);
}

#endif
