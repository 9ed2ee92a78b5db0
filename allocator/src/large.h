/* Large blocks: above the size classes. Up to LARGE_SPAN_MOST they are whole spans of the arena, kept for reuse when
 * freed; beyond that, when the arena is out of street, or once they have grown out of their span, each is a mapping of its
 * own, moved by mremap, or a span all the same where the kernel has no room for one. Blocks start at different lines of their first page, unless they were asked for by alignment.
 *
 * A mapping is found by its address in a table of mappings; there are few. No other lock is taken under the table's. */
#ifndef FREESTONE_LARGE_H
#define FREESTONE_LARGE_H

#include "arena.h"

enum { LARGE_SPAN_MOST = 128 * 1024 * 1024 };

/* A block of at least `bytes` (which is at most PTRDIFF_MAX), aligned to `alignment` (a power of two). *zero tells
 * whether it is known to read as zero; `dense`, whether all of it will be written. NULL when memory is out. */
void *large_take(size_t bytes, size_t alignment, bool dense, bool *zero);

/* The same with room to grow in place: address space, not memory. For blocks that have grown before. */
void *large_take_growing(size_t bytes, bool *zero);

/* Gives a span back. The block's tag has been seen to be TAG_LARGE. */
void large_give_span(void *block);

/* Gives a mapping back; false when no mapping starts at `block`. */
bool large_give_mapping(void *block);

/* Gives a large block back, of whichever kind; stops the program when it is none. */
void large_give(void *block, uint32_t tag);

/* Bytes the owner may write; 0 when no large block starts at `block`. `tag` is TAG_LARGE, or TAG_NONE for an address
 * outside the arena. `inside` tells that the caller is (gate.h); who is not waits for the table's lock a while and then reads without. */
size_t large_usable(const void *block, uint32_t tag, bool inside);

/* Makes the block hold `bytes` without copying: in place, or moved by the kernel. Returns where it is then; NULL when
 * that cannot be done and the block is unchanged. */
void *large_resize(void *block, uint32_t tag, size_t bytes);

/* The last resort of a block that grows, where there is no room for both: its pages move into another mapping, which needs address space only for what
 * is new. A span's addresses are given up. NULL when that cannot be done either. */
void *large_resize_away(void *block, uint32_t tag, size_t bytes);

/* Stops the program: a pointer that is no block's start was freed. It is in no slab and starts no large block. */
_Noreturn void large_misuse(const void *pointer);

/* Stops the program: `block`, a large one, was freed as one of `given` bytes, which it does not hold. */
_Noreturn void large_wrong_size(const void *block, uint32_t tag, size_t given);

/* Mappings alive and their bytes. */
void large_figures(size_t *mappings, size_t *bytes);

/* In the child of a fork, where no other thread exists. */
void large_after_fork(void);

#endif
