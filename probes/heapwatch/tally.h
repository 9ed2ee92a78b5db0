/* What one thread has done with the heap, and what all of them have in use. */
#ifndef FREESTONE_HEAPWATCH_TALLY_H
#define FREESTONE_HEAPWATCH_TALLY_H

#include "state.h"

struct tally *tally_mine(void);
uint64_t tally_now(void); /* nanoseconds, monotonic */

/* Blocks that were handed out and came back, in bytes. True now and then: time to look at the heap as a whole. */
bool tally_live(struct tally *tally, int64_t bytes);
void tally_size(struct tally *tally, size_t size);
void tally_knob(int parameter, int value);

/* Bytes in use, and bytes ever asked for, as far as threads have said. */
int64_t tally_in_use(void);
uint64_t tally_asked(void);

/* What is called when a thread ends, while its caches in the C library are still full. */
void tally_before_end(void (*look)(void));
int64_t tally_pending(void); /* bytes in use that no thread has said yet */
void tally_forked(void);     /* in the child: nothing was asked for yet, and what is in use stays */

/* How deep a thread is in the C library's malloc. A handler that ends the process from there must ask it nothing: its lock
 * may be held by the very thread. Written and read by one thread and the handlers that interrupt it. */
extern __thread volatile int tally_depth __attribute__((tls_model("initial-exec")));

/* One writer, but for the shared tally: an add that no other thread can come between would cost every call some ns. */
static inline void tally_add(_Atomic uint64_t *counter, uint64_t more) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

#endif
