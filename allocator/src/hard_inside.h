/* What the rooms of the hardened heap share. */
#ifndef FREESTONE_HARD_INSIDE_H
#define FREESTONE_HARD_INSIDE_H

#include "arena.h"
#include "hard_canary.h"
#include "hardened.h"
#include "lock.h"
#include "options.h"

enum {
    HARD_NOTHING = CLASS_COUNT, /* the class of blocks of no bytes: slots of 16 on pages that nobody may touch */
    HARD_CLASSES,
    HARD_SHARDS = 8,
    HARD_LEAST = 32, /* smaller slots would need more bits than a slice has */
    HARD_SLOT_MOST = 32 * 1024, /* blocks that need more are large ones: with guards of their own */
};

static inline size_t hard_slot_bytes(unsigned class) { return class == HARD_NOTHING ? 16 : class_bytes[class]; }

/* -- pages that nobody may touch: hard_slab.c ----------------------------------------------------------------- */

/* False, and counted, when the kernel refuses or there are too many. */
bool hard_guard(void *at, size_t bytes);

/* The same of a range that has so many of them already: it has but one then. */
bool hard_guard_whole(void *at, size_t bytes, uint16_t *guards);

/* Where there are `guards` of them. False when the kernel refuses: the pages stay as they are. */
bool hard_unguard(void *at, size_t bytes, unsigned guards);

size_t hard_unguarded(void);

/* Pages of a used span that nobody may touch: the limit does not count them if none is in memory. `zero`: they were never touched. If they may have been,
 * they go back, but only under a limit. Returns the bytes, or 0. */
size_t hard_uncount(void *at, size_t bytes, bool zero);

/* So many bytes are counted again, of a span that is about to be free. Free memory goes back if the limit lacks room for them. No lock is held. */
void hard_count_again(size_t bytes);

/* -- spans that stay closed: hard_closed.c --------------------------------------------------------------------- */

/* A span that is nobody's, with so many guards that the kernel would not open: it waits. */
void hard_closed_keep(uint32_t slice, unsigned guards);

/* Memory is out, or asked for: those that the kernel opens now go back to the arena. */
void hard_closed_open(void);

void hard_closed_after_fork(void);

/* -- slots in slabs: hard_slab.c ----------------------------------------------------------------------------- */

/* Where the pages begin that nobody may touch, from the slab's start. */
size_t hard_slab_guard(unsigned class);

/* A new slab, all slots free and clear, its tags not yet set; 0 when memory is out. Needs no lock. */
uint32_t hard_slab_make(unsigned class, unsigned shard);

void hard_slab_after_fork(void);

/* An empty slab goes back to the arena. Its tags are gone. Needs no lock. */
void hard_slab_unmake(uint32_t slab);

/* Where slots are taken from a slab, until it has none left: somewhere, but in few pages. A child of a fork copies each page that it writes to, and would copy all of a
 * slab for some blocks that lie anywhere. A slab whose number is 0 is none. */
struct hard_window {
    uint32_t slab, first, end;
};

/* A free slot of the slab, which has one; at random in the window, if asked. */
void *hard_slab_take(uint32_t slab, struct hard_window *window, uint64_t *chance);

/* Stops the program: no slot of the slab starts there. */
_Noreturn void hard_slab_misuse(uint32_t slab, const void *pointer);

/* The slot with the block; stops the program when none starts there. */
static inline uint32_t hard_slab_slot(uint32_t slab, const void *block) {
    const struct span *span = arena_span(slab);
    size_t offset = (uintptr_t)block - (uintptr_t)arena_address(slab);
    size_t slot = offset * span->reciprocal >> 32;
    if (unlikely(slot * hard_slot_bytes(span->size_class) != offset || slot >= span->blocks)) {
        hard_slab_misuse(slab, block);
    }
    return (uint32_t)slot;
}

/* Whether the slot is one that hard_slab_take may choose; and makes it one. */
bool hard_slab_is_free(uint32_t slab, uint32_t slot);
void hard_slab_free(uint32_t slab, uint32_t slot);

static inline unsigned char *hard_slab_block(uint32_t slab, uint32_t slot) {
    return (unsigned char *)arena_address(slab) + slot * hard_slot_bytes(arena_span(slab)->size_class);
}

/* The slab, found by any address in it. */
static inline uint32_t hard_slab_of(const void *block) { return arena_span(arena_slice(block))->first; }

/* -- held back: hard_held.c ---------------------------------------------------------------------------------- */

/* Freed slots that nobody takes yet: a row from which each newcomer displaces one at random, and a ring behind it. */
struct hard_held {
    void **places; /* `row` of the row, `ring` of the ring; NULL where there is no memory, or nothing is held back */
    uint32_t row, ring, next;
};

/* Room for what is held back of a class; without the lock, since it may ask the kernel. */
void hard_held_open(struct hard_held *held, unsigned class);

/* Holds the block back for the one that is returned, NULL for none; the block itself where there is no room. */
void *hard_held_swap(struct hard_held *held, void *block, uint64_t *chance);

/* One of them, NULL when there are none. */
void *hard_held_pop(struct hard_held *held);

/* -- slabs and what is held back, by shards: hard_shard.c ----------------------------------------------------- */

void hard_shard_open(unsigned shard, uint64_t chance);

/* Up to `want` slots of a class; fewer, but one, where the slab at hand has no more; 0 when memory is out. */
unsigned hard_shard_take(unsigned shard, unsigned class, void **slots, unsigned want);

/* One that is free in any shard. NULL when there is none. */
void *hard_shard_take_anywhere(unsigned class);

/* Cleared slots of a class are held back, and others no longer. */
void hard_shard_give(unsigned shard, unsigned class, void *const *slots, unsigned count);

/* Looks at what is free and what is held back; and at those in use, which it counts. What lies under locks that are not to be had is left
 * out (lock_take_within). */
void hard_shard_check(struct patience *patience);
size_t hard_slab_check(uint32_t slab, struct patience *patience, uint32_t *lost);

/* What hard_slab_check has lost, if anything: the first slot that is in use, has no trailer, and lies nowhere among free ones; and whether one still
 * is so. Of free slots that another thread which is inside is moving just now, both know nothing. */
enum { HARD_NONE_LOST = UINT32_MAX >> 1 };
bool hard_shard_has_lost(uint32_t slab, uint32_t slot, struct patience *patience);

/* Whether the slot is free in its slab, or held back in some shard, as far as locks are to be had. For who is about to stop the program. */
bool hard_shard_has(uint32_t slab, uint32_t slot, struct patience *patience);

void hard_shard_reclaim(void);
void hard_shard_figures(struct hardened_figures *figures);
void hard_shard_after_fork(void);

/* -- the share of small blocks that have pages of their own: hard_share.c ---------------------------------------- */

/* Whether the next small block may have a span; counted, until hard_share_give. */
bool hard_share_take(size_t size);

/* Of such a block, so many bytes of pages are free. */
void hard_share_give(size_t bytes);

void hard_share_open(void);
void hard_share_after_fork(void);

/* -- large blocks: hard_large.c ------------------------------------------------------------------------------ */

void hard_large_open(uint64_t chance);
void *hard_large_take(size_t size, size_t alignment, enum made made, bool small);
void hard_large_give(void *block, enum made made, size_t size);

/* Whether the library may write a pointer into a block in use. */
bool hard_large_has_room(const void *block);

/* The block stays where it is, with so many bytes, which are fewer. */
void hard_large_shrink(void *block, size_t size);
bool hard_large_size(const void *block, size_t *size);
size_t hard_large_check(uint32_t slice, struct patience *patience);
bool hard_large_reclaim(void);

/* Gives back the memory of blocks that are held back, which stays theirs for a while; `all`: also of the newest. Bytes. */
size_t hard_large_purge(bool all, bool *more);
void hard_large_figures(size_t *held);
void hard_large_after_fork(void);

/* Where the pages of a block begin and end. Of a span that has been one; needs no lock where nobody frees or shrinks it. */
struct hard_pages {
    unsigned char *from, *block, *to;
};
struct hard_pages hard_large_pages(uint32_t slice);
enum { HARD_FREED = MADE_ANYHOW }; /* size_class of a span that is held back */

/* -- what is wrong: hardened.c -------------------------------------------------------------------------------- */

/* What is checked of a block whose size and maker are known. */
void hard_check_kind(const void *block, enum made was, enum made made, size_t size, size_t told);

/* Whether nothing was written there since it was freed. */
_Noreturn void hard_not_clear(const unsigned char *block, size_t bytes, const unsigned char *broken);
static INLINE_ALWAYS void hard_check_clear(const unsigned char *block, size_t bytes) {
    const unsigned char *broken = likely(option_value(OPTION_CLEAR) != 0) ? zero_broken(block, bytes) : NULL;
    if (unlikely(broken != NULL)) {
        hard_not_clear(block, bytes, broken);
    }
}

/* Looks at a slot that may be in use, while others may be freeing it: true when it is. */
bool hard_check_used(uint32_t slab, uint32_t slot);
bool hard_has_no_trailer(uint32_t slab, uint32_t slot);

/* Marks a slot, if it is one of the slab; and those that threads have at hand. A bit each. */
static inline void hard_mark(uint32_t slab, uint64_t *marks, const void *slot) {
    size_t offset = (uintptr_t)slot - (uintptr_t)arena_address(slab);
    size_t number = offset / hard_slot_bytes(arena_span(slab)->size_class);
    if (slot != NULL && number < arena_span(slab)->blocks) {
        marks[number / 64] |= UINT64_C(1) << number % 64;
    }
}
void hard_mark_at_hand(uint32_t slab, uint64_t *marks);

#endif
