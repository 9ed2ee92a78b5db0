/* The arena: one reserved street of address space, cut into slices of 64 KiB and handed out as spans of slices.
 *
 *   base                                                                       base + extent (grows)   reserved end
 *    | tags: 4 bytes a slice | spans: 64 bytes | bitmaps: 512 bytes | slices handed out ...  | not yet  |
 *
 * Numbers of slices count from `base`, so the bookkeeping's own slices have numbers too (they are never handed out
 * and their tag is TAG_NONE). Everything about an address follows by arithmetic: slice = (p - base) >> 16, its tag is
 * the 4 bytes at base + 4 * slice. That one read tells free() whose block it is.
 *
 * A span is free-dirty (content unknown, pages likely resident), free-clean (reads as zero, costs no memory), free-huge
 * (the same where huge pages were asked for) or used. Free neighbours of the same kind are always joined. Spans are taken
 * best-fit: dirty ones first, then clean ones, then from the frontier, which has never been touched. A freed span stays
 * dirty for reuse; the oldest are purged when dirty memory exceeds its budget or has aged (arena_age).
 *
 * Huge pages are asked for by chunks of 2 MiB, for memory that will be written throughout (`dense`): single large blocks,
 * and slabs of classes that fill one slab after the other in a program that has grown. Such memory is taken from the
 * front of a free-huge span on, so at most one chunk is partly used. A chunk of which pages are purged is taken out of the
 * huge ones: else the kernel might fill the holes again. Whoever takes such memory touches its first chunk and looks at the
 * clock: where a huge page takes longer than the small ones it stands for, there are none for a while.
 *
 * Every function takes the arena's lock; callers may hold any other lock of the library but the table's of
 * large.c. */
#ifndef FREESTONE_ARENA_H
#define FREESTONE_ARENA_H

#include "tag.h"

enum span_state { SPAN_UNUSED, SPAN_DIRTY, SPAN_CLEAN, SPAN_HUGE, SPAN_PURGING, SPAN_USED };

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
    };
    union {
        uint32_t stamp; /* arena: when it became dirty, in milliseconds of os_milliseconds (low 32 bits) */
        uint32_t fresh; /* slab of large blocks: those from this number on read as zero, as they were never taken */
    };
    uint32_t slices; /* length */
    uint32_t first; /* valid in a span's last slice while free, in all of a slab's slices */
    uint8_t state; /* enum span_state, changed under the arena's lock only */
    uint8_t size_class; /* slab */
    uint16_t heap; /* slab: the heap whose lock protects what follows */
    union {
        uint32_t blocks; /* slab: blocks it holds in all */
        uint32_t offset; /* large: bytes from the span's start to the block's, less than a page */
    };
    uint32_t free_blocks; /* slab: set bits in its bitmap */
    uint32_t reciprocal; /* slab: class_reciprocal */
    uint16_t clean_pages; /* slab: bits set in `clean`, over all its slices */
    bool taken; /* slab: blocks were taken since slab_clean last looked */
    bool huge; /* arena, first slice of a chunk: huge pages were asked for */
    union {
        uint64_t summary; /* slab: bit w is set when word w of the bitmap is not 0 */
        size_t used_bytes; /* large: bytes the owner may write; they end with a page */
    };
    uint32_t clean; /* slab, each of its slices: bit p is set when page p is free, purged and not taken since */
    uint32_t examined; /* slab: free_blocks when slab_clean last purged */
};
_Static_assert(sizeof(struct span) == 64, "a span descriptor is one cache line");

enum { BITMAP_BYTES = SLICE_BYTES / 16 / 8 };

/* Figures of the arena, in bytes. */
struct arena_figures {
    size_t reserved, extent, used, dirty, bookkeeping;
    uint64_t purged; /* since the start */
};

/* Addresses by arithmetic. `slice` is a slice's number. */
static inline uint32_t arena_slice(const void *pointer) {
    return (uint32_t)(((uintptr_t)pointer - window.base) >> SLICE_BITS);
}
static inline void *arena_address(uint32_t slice) { return (void *)(window.base + ((uintptr_t)slice << SLICE_BITS)); }
extern struct span *arena_spans INTERNAL; /* indexed by slice */
extern char *arena_bitmaps INTERNAL;
static inline struct span *arena_span(uint32_t slice) { return &arena_spans[slice]; }

/* Reserves the street. Tries 1 TiB, then half, and so on down to a megabyte; false when even that is refused. */
bool arena_open(void);

/* A span of `slices` slices whose address is a multiple of `alignment` (in slices, a power of two), every slice tagged
 * TAG_NONE. `dense` tells that all of it will be written. *zero tells whether it is known to read as zero. 0 when memory
 * is out. */
uint32_t arena_take(uint32_t slices, uint32_t alignment, bool dense, bool *zero);

/* Asks for huge pages in a mapping that will be written throughout, by the same rules as for a span. `fresh` tells that it has
 * never been touched: its first chunk is tried then. */
void arena_prefer_huge(void *at, size_t bytes, bool fresh);

/* Gives a used span back; its tags become TAG_NONE. False when no used span starts there: somebody gave it back
 * before. */
bool arena_give(uint32_t slice);

/* Gives a used span back whose pages the caller has moved elsewhere: it reads as zero and costs no memory. */
void arena_give_clean(uint32_t slice);

/* Lengthens a used span in place; false when what follows is not free. New slices have TAG_NONE. */
bool arena_extend(uint32_t slice, uint32_t slices);

/* Shortens a used span to `slices`; the rest is given back. */
void arena_shorten(uint32_t slice, uint32_t slices);

/* Tags `slices` slices from `slice` on. No lock: the span is the caller's and not yet published. */
void arena_tag(uint32_t slice, uint32_t slices, uint32_t tag);

/* Purges what is over budget or has aged; cheap when there is nothing to do. To be called after spans were given back,
 * once no other lock is held: a purge takes long. */
void arena_age(void);

/* The same from the keeper; returns the bytes given back. *more tells whether spans are left that will be due. */
size_t arena_keep(bool *more);

/* Purges pages of a used span, whose owner sees to it that nobody writes there; false when the kernel refused. */
bool arena_purge_pages(void *at, size_t bytes);

/* Purges every dirty span; returns the bytes given back. */
size_t arena_purge_all(void);

/* The slices that may have been handed out: [first, the end of window.extent). */
uint32_t arena_first_slice(void);

/* True when `pointer` lies in a free span that was used before; its length goes to *bytes. */
bool arena_was_freed(const void *pointer, size_t *bytes);

void arena_figures(struct arena_figures *figures);

/* Fork: hold the lock across it; in the child, free it without a wake. */
void arena_before_fork(void);
void arena_after_fork(bool child);

#endif
