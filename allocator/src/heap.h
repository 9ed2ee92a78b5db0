/* A heap: a shard that owns slabs. Threads are spread over heaps; there are two for each CPU, however many threads. One for
 * each CPU serves all classes. The others serve those alone whose blocks share cache lines, so that few threads share
 * lines, and lean on one of the first for the rest, of which fewer heaps take less memory.
 *
 *   take:  depot of full magazines -> slabs with free blocks, fullest of the first 4 -> a new slab
 *   give:  depot, while it is within its bounds -> bitmaps, grouped by slab; an empty slab goes to the arena
 *
 * The depot passes whole magazines from threads that free to threads that allocate (Bonwick and Adams, "Magazines and
 * Vmem", 2001), so that churn never touches the bitmaps. It is bounded by bytes, per class and in all, and what lay in
 * it unneeded for a while is drained into the bitmaps.
 *
 * Every function takes the heap's lock, one at a time, and none while the kernel works. */
#ifndef FREESTONE_HEAP_H
#define FREESTONE_HEAP_H

#include "magazine.h"
#include "span.h"
#include "tag.h"
#include "zeros.h"

struct heap;
struct patience;

/* Opens the arena; false when the kernel refuses the address space. Called once. */
bool heap_start(void);

/* Heap number `number`; it exists once heap_join has chosen it (number 0: always). */
struct heap *heap_numbered(unsigned number);

/* Threads and heaps. `place` is where a thread notes its heap: it changes together with the heap's count of threads, so that a
 * fork in between does not find one without the other.
 *
 * A new thread joins the heap with the fewest threads, the lowest number among those. */
void heap_join(struct heap **place);

/* The thread has ended; *place becomes NULL. */
void heap_leave(struct heap **place);

/* A thread goes on, after others have come and gone: it moves if it shares its heap while some other has at least two threads
 * less. False when it stays. */
bool heap_move(struct heap **place);

unsigned heap_number(const struct heap *heap);

/* The heap with which threads of this one exchange blocks of the class: itself, or the one it leans on. */
struct heap *heap_for(struct heap *heap, unsigned class);

/* An empty magazine with that capacity, as its top; NULL when memory is out. */
void **heap_spare(struct heap *heap, unsigned capacity);

/* Takes an empty magazine back. */
void heap_return_spare(struct heap *heap, void **top);

/* Blocks in exchange for an empty magazine: a full one from the depot, or the same one filled from slabs to
 * `capacity`. Returns the top of the magazine to load; it is empty when memory is out. Without a magazine to give (NULL) the
 * heap brings one; NULL when it has none. */
void **heap_exchange_empty(struct heap *heap, unsigned class, void **empty, unsigned capacity);

/* The same with blocks that were in use before: fewer than `capacity` where the slabs to take from have no more, none where they
 * have none. For classes from CLASS_FRESH on: others' slabs do not know. */
void **heap_exchange_used(struct heap *heap, unsigned class, void **empty, unsigned capacity);

/* What a thread does with blocks of a class. */
enum trade { GIVES_AND_TAKES, GIVES_MORE, ONLY_GIVES };

/* An empty magazine of that capacity in exchange for a full one, whose blocks may be any heap's. Never fails: the full one
 * itself comes back emptied when there is no other. It goes to the depot of the thread's heap, and when there is no room to that
 * of the heap its top block belongs to. From a thread that gives more than it takes, and when the depots of its heap have some
 * already, it goes to that of the heap that most of its blocks seem to belong to; from one that only gives, always. */
void **heap_exchange_full(struct heap *heap, unsigned class, void **full, unsigned capacity, enum trade trade);

/* Frees all blocks of the magazine, which may be any heap's, into the bitmaps and keeps it as a spare one. */
void heap_flush(struct heap *heap, unsigned class, void **top);

/* The same for a caller who holds locks of the layers above: true when arena_age is to be called once these are free. */
bool heap_flush_with_lock(struct heap *heap, unsigned class, void **top);

/* One block from the slabs, past any cache; NULL when memory is out. *zeros tells what of it is known to read as zero. */
void *heap_take_one(struct heap *heap, unsigned class, struct zeros *zeros);

/* Frees blocks of any heap into the bitmaps of their owners: one taking of the lock for each owner among them. The
 * array is used as scratch. */
void heap_give(void **blocks, unsigned count);
bool heap_give_with_lock(void **blocks, unsigned count); /* as heap_flush_with_lock */

/* Stops the program where one of these blocks of the class, which somebody's cache holds as free, is free in its slab too, is among them
 * twice, or is no block's start. Changes nothing. At most what two magazines hold; their owner is inside. Blocks of a heap whose lock
 * is not to be had (lock_take_within) are left out. */
void heap_check(unsigned class, void *const *blocks, unsigned count, struct patience *patience);

/* Drains what depots did not need since they were last asked. True when there is anything in one. */
bool heap_drain_unneeded(void);

/* Purges the pages of slabs whose blocks are all free there; of slabs from which blocks were taken since the last look only with CLEAN_ALL.
 * Looks at about `slices` slices from *slice on, 0 for the first of all, and leaves there where to go on: 0 at the end. Returns the bytes; *more becomes true where another look may find something. */
size_t heap_clean(uint32_t *slice, uint32_t slices, enum cleaning cleaning, bool *more);

/* A look round over all slabs, once, for free pages to purge. Each begins behind the last one's last piece. */
struct heap_sweep {
    uint32_t start, at; /* slices: where it began, and where it goes on */
    uint32_t pieces; /* that it has purged */
    uint32_t others; /* all pieces purged when it began */
    size_t frees; /* the sum of all heaps' `frees` when it began */
    size_t bytes; /* that it has purged */
    bool begun, wrapped;
};

/* Begins one. It ends at once if nothing came free in slabs since one that missed nothing. */
void heap_begin_sweep(struct heap_sweep *sweep);

/* A piece of it: purges `bytes` and a little more, at most, in 4 MiB of slabs. Returns false at the end. */
bool heap_sweep_some(struct heap_sweep *sweep, size_t bytes);

/* Whether it may have missed something: blocks came free meanwhile, or others were purging pages, whose blocks are nobody's in the meantime. */
bool heap_sweep_missed(const struct heap_sweep *sweep);

/* Whether blocks have come into slabs since the keeper looked; and bytes of purged pages that were taken again, since the start. */
bool heap_has_new(void);
size_t heap_reused(void);

/* True while blocks that are free are not to be had, since their pages are being purged. */
bool heap_is_cleaning(void);

/* Purges pages of magazines that heaps did not need since they were last asked, or `all`. Goes on as long as `goes_on` says; returns the bytes.
 * *more becomes true if others may be found unneeded the next time. */
size_t heap_purge_magazines(bool all, bool (*goes_on)(void), bool *more);

/* Drains all depots and gives every empty slab back to the arena; or a piece of that, *step, from 0 on. False after the last. */
void heap_reclaim(void);
bool heap_reclaim_piece(unsigned *step);

/* A block of at least the class, aligned so, from any heap's slabs as they are: when memory is out, another heap or class may have some. NULL
 * when there is none. */
void *heap_take_anywhere(unsigned class, size_t alignment);

/* Goes up whenever the heap, or the one it leans on, gives back what it did not need for a while: its threads do the same
 * then. */
uint32_t heap_season(struct heap *heap);

/* Figures over all heaps, in bytes unless said; `of_class` may be NULL or have CLASS_COUNT elements (blocks in use). */
struct heap_figures {
    size_t slabs; /* slab spans */
    size_t in_use; /* blocks with the program or in thread caches */
    size_t free; /* free blocks in bitmaps */
    size_t free_blocks; /* how many there and in depots */
    size_t clean; /* their pages that the kernel has back */
    size_t depots; /* blocks in depots */
    size_t bookkeeping; /* spans of magazines, thread caches, heaps */
    unsigned heaps; /* so far */
};
void heap_figures(struct heap_figures *figures, size_t *of_class);

/* In the child of a fork, where no other thread exists. */
void heap_after_fork(void);

#endif
