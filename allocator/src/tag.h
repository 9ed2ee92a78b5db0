/* Tags: four bytes a slice that say whose the slice is. Leaf: what free() reads, owned by the arena.
 *
 * The tags lie at the very start of the reserved range, so the range's base is also the array of tags. */
#ifndef FREESTONE_TAG_H
#define FREESTONE_TAG_H

#include "size_class.h"

/* What every free() needs, on one cache line. extent is the end of what has ever been handed out: addresses from
 * there on are foreign, also those between extent and the reservation's end, whose tags may not be readable. */
struct window {
    uintptr_t base;
    size_t extent; /* grows only; written under the arena's lock, read without: see tag_of */
};
extern struct window window INTERNAL;

/* Tags. A slab's is (heap + 1) << TAG_HEAP_SHIFT | size class, so that subtracting the thread's own heap bits leaves
 * a valid class exactly for its own slabs. */
enum {
    TAG_HEAP_SHIFT = 8,
    TAG_HEAPS_MOST = 1 << 16,
};
static const uint32_t TAG_NONE = 0;                      /* bookkeeping, free, or never used */
static const uint32_t TAG_LARGE = UINT32_C(0xFFFFFF00);  /* first slice of a large span */
static const uint32_t TAG_INSIDE = UINT32_C(0xFFFFFF01); /* a further slice of a large span */

/* False for a pointer outside what the arena has handed out. Relaxed is enough: a pointer obtained from malloc is
 * handed over between threads by some synchronisation of the program's, which orders the growth of `extent` and the
 * writing of the tag before this read; for any other pointer either answer leads to an error message. */
static inline bool tag_of(const void *pointer, uint32_t *tag) {
    uintptr_t base = window.base;
    size_t offset = (uintptr_t)pointer - base;
    if (unlikely(offset >= __atomic_load_n(&window.extent, __ATOMIC_RELAXED))) {
        return false;
    }
    *tag = __atomic_load_n(&((const uint32_t *)base)[offset >> SLICE_BITS], __ATOMIC_RELAXED);
    return true;
}

#endif
