/* Spans: runs of slices, and their descriptors. Leaf, above tag.
 *
 * A span is free-dirty (content unknown, pages likely resident but for those that were purged when it was a slab), free-clean (reads as
 * zero, costs no memory), free-huge (the same where huge pages were asked for), free-kept (dirty, and the kernel would not take it: locked
 * memory), free-unmapped (its addresses are mapped before it is used again, and count against no limit), being purged (nobody's) or used. */
#ifndef FREESTONE_SPAN_H
#define FREESTONE_SPAN_H

#include "tag.h"

enum span_state { SPAN_UNUSED, SPAN_DIRTY, SPAN_CLEAN, SPAN_HUGE, SPAN_KEPT, SPAN_UNMAPPED, SPAN_PURGING, SPAN_USED };

/* One per slice; only the first slice's is in use, except `first`. 64 bytes, a cache line. */
struct span {
    _Alignas(64) uint32_t next;  /* arena: free list of its length; heap: slabs of its class. 0 ends a list */
    uint32_t prev;
    union {
        struct { /* arena: dirty spans, oldest first */
            uint32_t age_next;
            uint32_t age_prev;
        };
        uint64_t *bitmap; /* slab */
        size_t uncounted; /* used span of the hardened heap: bytes that the limit does not count */
    };
    uint32_t fresh; /* slab of large blocks: those from this number on read as zero, as they were never taken */
    uint32_t slices; /* length */
    uint32_t first; /* valid in a span's last slice while free, in all of a slab's slices */
    uint8_t state; /* enum span_state, changed under the arena's lock only */
    uint8_t size_class; /* slab */
    uint16_t heap; /* slab: the heap whose lock protects what follows */
    union {
        uint32_t blocks; /* slab: blocks it holds in all */
        uint32_t offset; /* large: bytes from the span's start to the block's, less than a page */
    };
    uint32_t
        free_blocks; /* slab: set bits in its bitmap; large block of the hardened heap: the generation of its key */
    uint32_t reciprocal; /* slab: of class_reciprocals */
    uint16_t clean_pages; /* slab: bits set in `clean`, over all its slices; large block of the hardened heap: guards */
    union {
        uint8_t taken; /* slab: bits of enum cleaning: blocks were taken since the last look of that kind */
        uint8_t watched; /* large: enum watch of arena.h */
    };
    uint8_t advice; /* arena, first slice of a chunk: enum advice of huge.h */
    union {
        uint64_t summary; /* slab: bit w is set when word w of the bitmap is not 0 */
        size_t used_bytes; /* large: bytes the owner may write; they end with a page */
        uint64_t stamp; /* arena, dirty span: os_milliseconds when it became so */
    };
    /* Each slice of a slab: bit p is set when page p is free, purged and not taken since. A slab that empties becomes a dirty span with
     * these bits as they are; they are 0 in all other spans. */
    uint32_t clean;
    union {
        struct {
            uint32_t examined : 13; /* slab: free_blocks when slab_begin_cleaning last let it be purged */
            uint32_t searched : 13, searched_for : 6; /* slab: free_blocks when no run was found for that class */
        };
        uint32_t purged; /* arena, free span: bits set in `clean`, over all its slices */
    };
};
_Static_assert(sizeof(struct span) == 64, "a span descriptor is one cache line");

/* Why slabs are cleaned. For the keeper and for the budget, each with a bit of `taken`, a slab that is being taken from is passed over
 * once; if the program asks, none is. */
enum cleaning { CLEAN_FOR_KEEPER = 1, CLEAN_FOR_BUDGET = 2, CLEAN_ALL = 3 };
enum { SEARCHED = 4, TAKEN_ALL = CLEAN_ALL | SEARCHED }; /* a bit of `taken` too, for a search for runs */

enum { BITMAP_BYTES = SLICE_BYTES / 16 / 8 };

/* Addresses by arithmetic. `slice` is a slice's number. */
static inline uint32_t arena_slice(const void *pointer) {
    return (uint32_t)(((uintptr_t)pointer - window.base) >> SLICE_BITS);
}
static inline void *arena_address(uint32_t slice) { return (void *)(window.base + ((uintptr_t)slice << SLICE_BITS)); }
extern struct span *arena_spans INTERNAL; /* indexed by slice */
extern char *arena_bitmaps INTERNAL;
static inline struct span *arena_span(uint32_t slice) { return &arena_spans[slice]; }

#endif
