/* What a heap is made of, for the rooms that make it up: which heap (heap_choice), its depots (depot), blocks into bitmaps (flush), the
 * exchange with threads (heap), giving back (reclaim). */
#ifndef FREESTONE_HEAP_INSIDE_H
#define FREESTONE_HEAP_INSIDE_H

#include <stdatomic.h>

#include "heap.h"
#include "lock.h"
#include "slab.h"

/* What a heap has of one size class. */
struct shelf {
    uint32_t slabs; /* those with free blocks; 0 ends the list */
    uint32_t blocks; /* in all slabs of the class */
    union magazine *depot; /* full magazines */
    uint32_t depot_count; /* how many */
    uint32_t depot_low; /* fewest there were since the depots were last settled */
    uint32_t depot_due; /* to be drained */
    uint32_t depot_brought; /* since the start, modulo 2^32 */
    size_t depot_blocks; /* blocks in them */
    uint32_t lent, borrowed; /* blocks of its slabs that other classes have; its blocks in slabs of other classes */
};

/* Where a look for runs of free blocks to lend to one size class goes on. */
struct lend_place {
    uint32_t slab; /* looked at last, or 0 */
    uint16_t number; /* of the slab's block from which on to look */
    uint8_t class; /* of the slab; 0 before the first and behind the last */
};

/* Where a heap lends to one size class. */
struct lender {
    struct lend_place at;
    uint32_t left; /* bytes that may be lent until the class takes another slab of its own */
};

/* The same when memory is out. A look that has found nothing in any slab is not taken again until something has changed. */
struct last_lender {
    struct lend_place at;
    size_t alignment; /* the largest that was asked for since the first slab */
    size_t lack; /* the fewest bytes that the limit had no room for, of a run that was passed over since; 0 for none */
    size_t changes; /* of the heap, at the first slab */
    bool futile; /* the last slab was reached, and nothing has been missed */
};

struct heap {
    /* protects everything in the heap, the descriptors and bitmaps of its slabs, and the magazines in its depots */
    _Alignas(64) struct lock lock;
    uint32_t events;
    uint64_t due_classes; /* bit c: shelf[c].depot_due is not 0 */
    uint64_t empty_classes; /* bit c: a slab of the class may be there that has no block in use */
    size_t grown; /* bytes of slabs taken since the depots were last settled */
    uint32_t traffic; /* bytes of blocks exchanged since they were last drained for that */
    uint32_t came; /* bytes of fresh slabs, and of purged pages taken again, since the budget was last looked at */
    size_t depot_bytes;
    size_t free_blocks, free_bytes; /* in bitmaps */
    size_t clean_bytes; /* of pages among them that are purged */
    size_t frees; /* times that free blocks came into its slabs, since the start */
    size_t reused_bytes; /* of pages that were purged and taken again, since the start */
    size_t looked_at; /* free_bytes less clean_bytes as the keeper left them, or less since, and what is new in slabs */
    union magazine *spare;
    union magazine *strays; /* full ones, of other heaps' blocks: sent home once the lock is free */
    uint32_t spare_count;
    uint32_t spare_due; /* those to go to the pool */
    bool gave_slab; /* to the arena, since arena_age was last called */
    uint32_t hand[CLASS_COUNT]; /* slabs at which shelf_take_charged goes on; any may be gone. Under the lock */
    struct shelf shelf[CLASS_COUNT];
    /* What changes seldom, and threads read on every slow path, most without the lock: apart from what each exchange writes. */
    _Alignas(64) struct heap *host; /* serves the classes that this one does not; itself where it serves all */
    uint64_t settled; /* milliseconds; under the lock */
    size_t slab_bytes; /* under the lock */
    size_t pieces; /* of its slabs that were cleaned, since the start; under the lock */
    size_t published; /* its part of the total that the budget is compared with; under the lock */
    uint64_t lending; /* bit c: blocks of class c may be lent. Under the lock */
    uint32_t spare_low; /* fewest spare since the keeper last looked. Under the lock */
    uint32_t number;
    _Atomic uint32_t seasons; /* times they were settled; read without the lock: see heap_season */
    struct lender lenders[CLASS_COUNT];
    struct last_lender last_lenders[CLASS_COUNT]; /* under the lock */
};
_Static_assert(CLASS_COUNT <= 64, "a bit of due_classes and of empty_classes for each");

/* -- which heap: heap_choice.c ------------------------------------------------------------------------------- */

/* Heaps so far: each of a lower number exists, and stays. */
unsigned heap_count(void);

/* Threads that exchange with the heap of that number. Relaxed: any recent value will do. */
uint32_t heap_threads(unsigned number);

/* -- slabs on shelves: shelf.c ------------------------------------------------------------------------------- */

void shelf_list(struct shelf *shelf, uint32_t slab);
void shelf_unlist(struct shelf *shelf, uint32_t slab);

/* The fullest of the first few slabs that have a free block: emptier ones get the chance to empty out. 0 when there is none. */
uint32_t shelf_choose(const struct shelf *shelf);

/* A new slab, all of whose blocks are free, becomes the heap's. */
void shelf_add(struct heap *heap, unsigned class, uint32_t slab);

/* All of the slab's blocks are free: it goes back to the arena. */
void shelf_release(struct heap *heap, uint32_t slab);

/* The same, but a class's only slab of one slice is kept, so that a program around its edge does not make it anew. True when it is gone. */
bool shelf_emptied(struct heap *heap, unsigned class, uint32_t slab);

/* Takes up to `want` blocks of the slab and stores them downwards from `end`. Returns 0 if they may lie on purged pages for which the limit has no
 * room: shelf_take_charged may get some then. */
unsigned shelf_take(struct heap *heap, uint32_t slab, void **end, unsigned want);

/* Counts free blocks of the slab that were lent, and those of its pages that were clean before. */
void shelf_count_lent(struct heap *heap, uint32_t slab, unsigned blocks, size_t clean);

/* Whether a slab that was looked at once, 0 for none, is still one of the heap and the class with free blocks. Under the lock. */
bool shelf_lists(const struct heap *heap, unsigned class, uint32_t slab);

/* Near the limit: takes up to `want` blocks from the first slab that has one which the limit allows, on pages in memory if possible. Looks at a few
 * slabs, behind those of the last call; *all tells that the class has no others. */
enum { SHELF_LOOK = 64 };
unsigned shelf_take_charged(struct heap *heap, unsigned class, void **end, unsigned want, bool *all);

/* -- blocks into bitmaps: flush.c ---------------------------------------------------------------------------- */

/* The heap whose slab the block lies in; NULL without one. */
struct heap *flush_owner(const void *block);

/* The same for a block that was one of the class when it was freed: NULL also when the slab there is of another by now. */
struct heap *flush_home(const void *block, unsigned class);

/* Frees a magazine's blocks into bitmaps, as far as they are this heap's. True when none are left; else the magazine is a full
 * one of what is left. */
bool flush_blocks(struct heap *heap, unsigned class, void **top);

/* Frees one block of the heap's. */
void flush_one(struct heap *heap, void *block);

/* -- magazines: depot.c -------------------------------------------------------------------------------------- */

void depot_keep_spare(struct heap *heap, union magazine *magazine);
union magazine *depot_take_spare(struct heap *heap);

/* What the heap's spare ones were not needed for since this was last called is due to go to the pool; or `all`. Some always stay.
 * True if more are left than that. */
bool depot_mark_spare(struct heap *heap, bool all);

/* Up to so many of those that are due, linked by `next`; NULL when none is. */
union magazine *depot_give_up_spare(struct heap *heap, uint32_t most);

/* The full magazine that came last; NULL when there is none. */
union magazine *depot_pop(struct heap *heap, unsigned class);

/* Puts a full magazine into the depot, for a spare one; NULL when there is no room, or none of those. */
union magazine *depot_keep(struct heap *heap, unsigned class, union magazine *full, unsigned capacity);

/* What the depots did not need since they were last asked is due to be drained. */
void depot_mark_unneeded(struct heap *heap);
void depot_mark_all(struct heap *heap);

/* Drains up to so many of the magazines that are due. False when none are left. */
bool depot_drain(struct heap *heap, unsigned magazines);

/* -- looking: check.c ---------------------------------------------------------------------------------------- */

/* Stops the program when one of a magazine's blocks is none of the class, or is there twice. Without a lock: whether they are free already is left to
 * who has it. */
void check_magazine(unsigned class, void **top);

/* -- the budget of free memory in slabs: budget.c ------------------------------------------------------------ */

/* What one call may do: slices passed, slices of slabs whose bitmaps are read, pieces and bytes purged. The last slab may exceed the slices, and
 * the last piece, of at most 256 KiB, the bytes. */
struct heap_effort {
    uint32_t visits, slices, pieces;
    size_t bytes;
};

/* Purges free pages of slabs that changed since they were last looked at, from *slice on, within the effort. *slice is where to go on.
 * Returns the bytes. reclaim.c */
size_t heap_clean_some(uint32_t *slice, struct heap_effort effort);

/* Free and not purged. Clean pages may reach into what is left over behind a slab's last block, which is no free block. */
static inline size_t heap_returnable(const struct heap *heap) {
    return heap->free_bytes - bits_min(heap->free_bytes, heap->clean_bytes);
}

enum { BUDGET_STEP = 128 * 1024 }; /* by which a heap's share of the total may be wrong */

void budget_publish_step(struct heap *heap, size_t returnable);

/* Adds the heap's returnable bytes to the total if they changed by more than a step. Under the heap's lock. */
static inline void budget_publish(struct heap *heap, size_t returnable) {
    /* modulo 2^64: also if it has shrunk */
    if (unlikely(returnable - heap->published + BUDGET_STEP > 2 * (size_t)BUDGET_STEP)) {
        budget_publish_step(heap, returnable);
    }
}

/* Published by all heaps. */
size_t budget_returnable(void);

/* The bytes that came since they were last asked for, if they are worth a look at the budget; else 0. Under the heap's lock. */
static inline size_t budget_due(struct heap *heap) {
    size_t came = heap->came;
    if (likely(came < SLICE_BYTES)) {
        return 0;
    }
    heap->came = 0;
    return came;
}

/* Purges free pages of slabs if the heaps hold more of them than the budget. No lock is held. */
void budget_keep(size_t came);

void budget_after_fork(void);

/* Whether the heaps hold so much more that purging has not helped. */
bool budget_is_missed(void);

/* -- holes in slabs of other classes: lend.c ----------------------------------------------------------------- */

/* The class has taken a slab: while the budget is exceeded by far, what it needs next is lent. Under the heap's lock. */
void lend_begin(struct heap *heap, unsigned class);

/* Takes up to `want` blocks of at least the class's size from slabs of smaller classes, and stores them downwards from `end`. Returns how many.
 * Under the lock. */
unsigned lend_take(struct heap *heap, unsigned class, void **end, unsigned want);

/* One caller's look when memory is out. */
struct last_look {
    bool whole; /* it has begun at the first slab */
    bool over; /* no slab is left to be looked at */
};

/* Memory is out: a block of at least the class's size, aligned so, from slabs of smaller classes, or NULL. Looks at a few slabs, behind those of the last
 * call, and is to be called until the look, first zeroed, is over. Under the lock. */
void *lend_last(struct heap *heap, unsigned class, size_t alignment, struct last_look *look);

/* -- leaving a heap: heap.c ---------------------------------------------------------------------------------- */

/* Frees the heap's lock and sends home what was found of others'. */
void heap_leave_quietly(struct heap *heap);

#endif
