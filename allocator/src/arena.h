/* The arena: the street's slices, handed out as spans.
 *
 * Free neighbours of the same kind are always joined. Spans are taken best-fit: dirty ones first, then clean ones, then from the front,
 * which has never been touched. A freed span stays dirty for reuse; the oldest are purged when dirty memory exceeds its
 * budget or has aged.
 *
 *   arena      the interface             spans      split, joined, counted
 *   huge       where huge pages are      bins       free spans by length
 *   purge      what goes back, when      ages       ... dirty ones by age
 *   street     addresses and what is usable of them
 *
 * Huge pages are asked for by chunks of 2 MiB, for memory that will be written throughout, as earlier memory for the same use was seen to be: the
 * whole chunks of single large blocks, and slabs of classes that fill one slab after the other in a program that has grown. A slab is taken from the
 * front of a free-huge span on, so at most one chunk is partly used. Where a part of a chunk is purged, what is free of it goes too. Whoever takes such memory touches its first chunk and looks at
 * the clock: where a huge page takes longer than the small ones it stands for, there are none for a while.
 *
 * Every function takes the arena's lock, and the one for growth before it; arena_take, arena_extend and what purges ask the kernel, so
 * no lock that others may need is held by whoever calls them. */
#ifndef FREESTONE_ARENA_H
#define FREESTONE_ARENA_H

#include "span.h"

/* Figures of the arena, in bytes unless said. */
struct arena_figures {
    size_t reserved, extent, used, bookkeeping;
    size_t usable; /* the extent, and what is mapped behind it */
    size_t unmapped; /* of the extent: free, and mapped before it is used again */
    size_t dirty; /* less the pages of dirty spans that were purged before */
    size_t dirty_spans; /* how many */
    uint64_t purged; /* since the start */
};

/* Opens the street; false when the kernel refuses it. */
bool arena_open(void);

/* What memory is for that may be written throughout. Of each use it is remembered how densely such memory was written (huge.h). */
enum { ARENA_NO_USE, ARENA_FIRST_BLOCK = CLASS_COUNT + 1, ARENA_USES = ARENA_FIRST_BLOCK + 4 * (32 - 6) };
static inline uint32_t arena_use_of_slab(unsigned class) { return class + 1; }
/* A block of at least 4 MiB: four uses per doubling of its length. They end half a slice below where one would think, so that a page more or less
 * makes no difference to usual lengths. */
static inline uint32_t arena_use_of_block(size_t bytes) {
    uint32_t slices = (uint32_t)bits_min((bytes + SLICE_BYTES / 2) >> SLICE_BITS, UINT32_MAX);
    unsigned doubling = bits_highest(slices);
    return ARENA_FIRST_BLOCK + 4 * (doubling - 6) + (slices >> (doubling - 2) & 3);
}

/* A span of `slices` slices whose address is a multiple of `alignment` (in slices, a power of two), every slice tagged
 * TAG_NONE. `use` tells what will be written throughout, perhaps, or is ARENA_NO_USE. *zero tells whether it is known to read as zero. 0 when memory
 * is out. */
uint32_t arena_take(uint32_t slices, uint32_t alignment, uint32_t use, bool *zero);

/* Asks for huge pages in a mapping, by the same rules as for a span. `fresh` tells that it has never been touched: its first chunk is
 * tried then. False when it keeps small pages. */
bool arena_prefer_huge(void *at, size_t bytes, bool fresh);

/* Whether to look how densely fresh memory was written: unless filters watch, or may, which need not know that system call. */
bool arena_may_look(void);

/* How much the kernel can report about the writes to a freed block: nothing unless its memory was
 * fresh; the written pages; only the written chunks, if it asked for huge pages; or the written
 * pages of its end, if only that was fresh. */
enum watch { WATCH_NOTHING, WATCH_PAGES, WATCH_CHUNKS, WATCH_END };

/* A block that is watched so is about to be given back: what was written of it is remembered. By a bounded number of system calls. */
void arena_look(const void *at, size_t bytes, enum watch watched);

/* Purge the oldest dirty memory, as many bytes as the caller is about to touch, so that both are
 * not resident together. At most 64 MiB are purged by the call if the keeper can purge the rest.
 * Less is purged during a fork, and nothing if all freed memory is to stay. */
void arena_give_way(size_t bytes);

/* Charges memory that a caller is about to map or take (limit.h), who releases it if he gets none. Near a limit the oldest free spans are purged first,
 * as much as lacks; near the control group's then free pages in slabs. Returns false if the program's own limit would be exceeded all the same. The caller holds no lock. */
bool arena_charge(size_t bytes);

/* Beyond the control group's edge, so many bytes of fresh memory find no free span to go back for them: free pages in slabs go back, about as many.
 * Defined above, in reclaim.c. The caller holds no lock. */
void arena_reclaim(size_t bytes);

/* Purges a piece of the span that has been free for longest; false if there is none. */
bool arena_purge_piece(void);

/* Gives a used span back; its tags become TAG_NONE. False when no used span starts there: somebody gave it back
 * before. */
bool arena_give(uint32_t slice);

/* Gives a slab's span back, with its count of purged pages and their bits. */
void arena_give_slab(uint32_t slice);

/* Gives a used span back that reads as zero and costs no memory. The limit counts its bytes no longer: the caller has released them. */
void arena_give_clean(uint32_t slice);

/* Lengthens a used span in place; false when what follows is not free. New slices have TAG_NONE. */
bool arena_extend(uint32_t slice, uint32_t slices);

/* Shortens a used span to `slices`; the rest is given back. */
void arena_shorten(uint32_t slice, uint32_t slices);

/* Tags `slices` slices from `slice` on. No lock: the span is the caller's and not yet published. */
void arena_tag(uint32_t slice, uint32_t slices, uint32_t tag);

/* To be called after spans were given back, once no other lock is held: tells the keeper of what is due, or does a share of it. */
void arena_age(void);

/* Purges the next piece of what is due, for the keeper, and adds its bytes; false when there is none. */
bool arena_keep(size_t *bytes);

/* What the kernel would not take is asked for again: once something was given back since. With `all` in any case, and what is clean is purged once
 * more: mlockall(MCL_CURRENT) may have brought it into memory. */
void arena_revive(bool all);

/* Whether spans are left that will be due. */
bool arena_has_more(void);

/* Whether as much is free, though it need not be in one piece. */
bool arena_may_hold(size_t bytes);

/* Purges pages of a used span, whose owner sees to it that nobody writes there, and counts `unclean` bytes of them; false when the kernel
 * refused. */
bool arena_purge_pages(uint32_t slice, void *at, size_t bytes, size_t unclean);

/* Memory is out: all that is free is purged, also what others are purging just now, and the street's end given back, and what is free unmapped, which
 * a limit may count that a mapping elsewhere has to keep to. */
void arena_make_room(void);

/* Unmaps a free span that the kernel would not purge, since it is locked perhaps, and adds its bytes; false when there is none, or too many are unmapped. */
bool arena_unmap_kept(size_t *bytes);

/* Of a used span only the addresses are left, `bytes` at its start not even mapped: they are mapped again before they are handed out again. Its tags
 * are TAG_NONE, since before those were unmapped. What the limit counts is with the pages. */
void arena_abandon(uint32_t slice, size_t bytes);

/* Waits until whoever makes the street longer or shorter just now has done so. */
void arena_await_growth(void);

/* Gives address space back: the street's end, as far as nothing there is in use and it is at least `least` slices. With `kept` also what the
 * kernel would not purge, since it is locked perhaps: returns the bytes of that. */
size_t arena_retreat(uint32_t least, bool kept);

/* The same for the keeper's looks: once the end is long and nobody has taken of it since the last look, so that a program that grows and
 * shrinks all the time keeps it. True where the next look may find more to do. */
bool arena_settle(void);

/* Purges every dirty span, but for what the kernel would not take (arena_revive); returns the bytes given back. Or a piece of the oldest: adds
 * its bytes, false when there is none. */
size_t arena_purge_all(void);
bool arena_purge_some(size_t *bytes);

/* Waits for a piece that another thread is purging just now; false, at once, when there is none. */
bool arena_await_purge(void);

/* The slices that may have been handed out: [first, the end of window.extent). */
uint32_t arena_first_slice(void);

/* True when `pointer` lies in a free span that was used before, or in what was the street's end and is unmapped; its length goes to *bytes. */
bool arena_was_freed(const void *pointer, size_t *bytes);

void arena_figures(struct arena_figures *figures);

/* In the child of a fork, where no other thread exists. */
void arena_after_fork(void);

#endif
