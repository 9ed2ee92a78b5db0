/* What one thread has done with the heap, and the sum over all of them. */
#ifndef FREESTONE_HEAPWATCH_TALLY_H
#define FREESTONE_HEAPWATCH_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALLY_SIZES = 48, TALLY_LIFETIMES = 48, TALLY_KNOBS = 32 };

/* Written by one thread at a time, read by whoever sums up: relaxed everywhere, since they are counts and order nothing.
 * Kept when its thread ends and handed to the next one. */
struct tally {
    _Atomic uint64_t mallocs, callocs, frees, reallocs;
    _Atomic uint64_t moved, copied, small_steps, cleared, asked;
    _Atomic uint64_t looked, waited, waited_ns;
    _Atomic uint64_t sampled_frees, remote_frees;
    _Atomic uint64_t size_calls[TALLY_SIZES], size_bytes[TALLY_SIZES]; /* by the bits of size - 1 */
    _Atomic uint64_t lifetimes[TALLY_LIFETIMES];                       /* by the bits of bytes asked for meanwhile */
    int64_t pending;   /* bytes in use that the sum does not know yet */
    uint32_t turn;     /* calls, for choosing those that are looked at */
    uint32_t number;   /* of the tally, from 1 */
    _Atomic bool used; /* by a living thread; taken by exchange, so that one thread has it */
    bool shared;       /* the last one: of all threads for which there is none of their own */
};

struct tally *tally_mine(void);
uint64_t tally_now(void); /* nanoseconds, monotonic */

/* Blocks that were handed out and came back, in bytes. True now and then: time to look at the heap as a whole. */
bool tally_live(struct tally *tally, int64_t bytes);
void tally_size(struct tally *tally, size_t size);
void tally_knob(int parameter, int value);

/* Bytes in use, the most so far, and bytes ever asked for, as far as threads have said. */
int64_t tally_in_use(void);
int64_t tally_most(void);
uint64_t tally_asked(void);

/* What is called when a thread ends, while its caches in the C library are still full. */
void tally_before_end(void (*look)(void));
void tally_forked(void); /* in the child: nothing was asked for yet, and what is in use stays */
void tally_sum(struct tally *sum); /* over all threads; takes what is pending as well */
uint32_t tally_most_threads(void);
size_t tally_knobs(int (*knobs)[2]); /* at most TALLY_KNOBS, in their order */

/* One writer, but for the shared tally: an add that no other thread can come between would cost every call some ns. */
static inline void tally_add(_Atomic uint64_t *counter, uint64_t more) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

#endif
