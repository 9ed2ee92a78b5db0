/* The shelter: blocks without a lock. For whoever must not wait for the library's locks: threads that allocate while another forks, and
 * signal handlers that have interrupted the library in their own thread. Leaf above os.
 *
 * A block comes from a chunk of the calling thread's own, by moving its end; chunks are found by their address in a table that is only ever
 * changed by one compare-and-swap. What is to be freed meanwhile and is not the shelter's own is parked: linked, in the memory that
 * its owner has just given up, into a stack that later slow paths take from. At every instant all of this is whole, so a fork may come
 * at any. */
#ifndef FREESTONE_SHELTER_H
#define FREESTONE_SHELTER_H

#include <stdatomic.h>

#include "bits.h"

/* A block that reads as zero. NULL when memory is out. `alignment` is a power of two. */
void *shelter_take(size_t bytes, size_t alignment);

/* The same from a chunk of its own, which goes with the block: for a thread that nobody will see end (shelter_leave). */
void *shelter_take_alone(size_t bytes, size_t alignment);

/* Frees a block of the shelter's; false when it is none. Any thread, any time. */
bool shelter_give(void *block);

/* Bytes that its owner may write; 0 for what is no block of the shelter's. */
size_t shelter_usable(const void *block);

/* Keeps a block of somebody else's to be freed later. */
void shelter_park(void *block);

/* One of those, NULL when there is none or another thread is taking some. Between the two calls one block after the other may be had. */
extern _Atomic(void *) shelter_parked INTERNAL;
static inline bool shelter_has_parked(void) { /* relaxed: sooner or later somebody sees it */
    return unlikely(atomic_load_explicit(&shelter_parked, memory_order_relaxed) != NULL);
}
bool shelter_begin_taking(void);
void *shelter_take_parked(void);
void shelter_end_taking(void);

/* The calling thread ends: its chunk goes when its blocks do. */
void shelter_leave(void);

/* In the child of a fork: nobody is taking. */
void shelter_after_fork(void);

#endif
