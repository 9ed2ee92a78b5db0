/* The hardened heap: every block is checked when it is freed (docs/design/hardened.md). Instead of slabs and magazines, not beside them.
 *
 *   slot     [ block ........ | canary | trailer ]      zero while it is free
 *   slab     [ slot | slot | slot | ... | page that nobody may touch ]
 *   large    [ page that nobody may touch | block ... | such a page ]
 *
 * The trailer tells how the block was made and how large it is, and is authenticated; a slot without one is free. Freed slots are cleared and
 * held back for a while, in an order nobody can guess; whoever takes one looks whether it is still clear. Slots are chosen at random.
 *
 *   hardened     the interface     hard_slab      slots in slabs
 *   hard_shard   slabs by shards   hard_held      what is held back
 *   hard_large   blocks above the classes         hard_canary    canaries, trailers, zeros
 *   hard_fault   what lies where an access faults   hard_closed   spans that the kernel would not open again
 *
 * A thread takes some slots ahead, and gives some at a time (struct hard_cache): nothing but its own is touched for the others, and a
 * block's trailer by one atomic exchange. Shards have a lock each. Every function stops the program at what it finds. */
#ifndef FREESTONE_HARDENED_H
#define FREESTONE_HARDENED_H

#include "made.h"
#include "tag.h"

struct hard_cache;
struct patience;

static inline bool hardened_owns(uint32_t tag) { return tag == TAG_HARD || tag == TAG_HARD_LARGE; }

/* Draws the secrets. Once, before all else. */
void hardened_open(void);

/* Reads how many closed pages there may be, from a file: by a constructor, since the program may be forbidden to open any later. */
void hardened_note_start(void);

/* -- of the calling thread alone, which need not be inside (gate.h) ------------------------------------------- */

/* A block of `size` bytes that reads as zero; NULL where the cache, which may be NULL, has no slot for it. */
void *hardened_take_ahead(struct hard_cache *cache, size_t size, size_t alignment, enum made made);

/* Makes room for a pointer at the start of a block in use, whose owner frees it and is refused (shelter_park). False where that cannot be: then
 * the block is kept aside, and whoever is inside next frees it. */
bool hardened_make_room(void *block, uint32_t tag);

enum hard_given {
    HARD_GIVEN,
    HARD_FULL, /* nothing is done: the cache has no room, and the thread is not inside */
    HARD_CLEARED, /* the block is nobody's, and is to be given to hardened_give_cleared */
};

/* Frees a block whose tag is TAG_HARD. `made` and `size` are what the caller says of it. `inside`: whether the thread is (gate.h). */
enum hard_given hardened_give_ahead(struct hard_cache *cache, void *block, enum made made, size_t size, bool inside);

/* Bytes that were asked for; false when no block in use starts there. */
bool hardened_size(const void *block, size_t *size);

/* Makes the block hold `size` bytes where it is; false when it has to move. */
bool hardened_resize(void *block, size_t size);

/* -- inside --------------------------------------------------------------------------------------------------- */

/* A cache for a thread; NULL when memory is out. */
struct hard_cache *hardened_cache(void);

/* A block of `size` bytes, which is at most PTRDIFF_MAX, that reads as zero; NULL when memory is out. Of none: it can be neither read nor
 * written. */
void *hardened_take(struct hard_cache *cache, unsigned shard, size_t size, size_t alignment, enum made made);

/* The same where memory is out: from any shard, and from larger slots than it takes. */
void *hardened_take_anywhere(size_t size, size_t alignment, enum made made);

/* What hardened_give_ahead has cleared. */
void hardened_give_cleared(struct hard_cache *cache, unsigned shard, void *block);

/* Frees a block whose tag is TAG_HARD_LARGE. */
void hardened_give_large(void *block, enum made made, size_t size);

/* All that the cache holds goes to the shard. */
void hardened_flush(struct hard_cache *cache, unsigned shard);

/* The block has fewer bytes from now on, and stays where it is. */
void hardened_shrink(void *block, size_t size);

/* Looks at every block: canaries, trailers, and whether what is free is clear; `cache` is the calling thread's. Returns how many are in use. Of
 * what is locked for longer than `patience` lasts it knows nothing; NULL waits (lock_take_within). `is_alone`: whether no other thread is inside. */
size_t hardened_check(const struct hard_cache *cache, struct patience *patience, bool (*is_alone)(void));

/* Gives back the memory of what is held back and can be held back without it. `all`: also what was freed lately. Returns how many bytes; *more is
 * set if there will be some later. */
size_t hardened_purge(bool all, bool *more);

/* Memory is out: nothing is held back any more. */
void hardened_reclaim(void);

/* -- anywhere, also in the handler of a signal: hard_fault.c ---------------------------------------------------- */

/* An access to `address` has faulted. When it lies where the hardened heap lets nobody touch, says so in one line, and returns true. Takes no
 * lock. */
bool hardened_explain(const void *address);

/* In bytes: slabs, what is in use and free in them, and spans of freed large blocks that are held back. Numbers: guards that the kernel refused
 * or that would have been too many. */
struct hardened_figures {
    size_t slabs, in_use, free, held, held_spans, unguarded;
};
void hardened_figures(struct hardened_figures *figures);

/* In the child of a fork, where no other thread exists: blocks that it makes have a key of their own, and places that its parent and its siblings
 * cannot know. `cache` is the forking thread's, or NULL; `may_ask`: the kernel for random bytes. */
void hardened_after_fork(struct hard_cache *cache, bool may_ask);

/* Before the thread takes or frees inside: what it had taken ahead before the fork is known to the parent, and no block comes from there any more. */
void hardened_inherit(struct hard_cache *cache);

/* In the parent. */
void hardened_after_fork_in_parent(void);

#endif
