/* The gate: who may change what a fork copies.
 *
 * Whoever changes heaps, arena or caches beyond its own loaded magazines is *inside*: a thread with a cache says so in the cache (`busy`),
 * anybody else is counted (outsiders). A fork closes the gate, waits until nobody else is inside, and then copies structures that are
 * whole, without holding a lock. Who comes while it is closed is refused and lives on the shelter meanwhile; so does a signal handler
 * that interrupts its own thread inside. Nobody waits for a fork, and a fork waits only for what goes on without it.
 *
 * Why nobody is overlooked: who enters says so and then looks at the gate; who forks closes the gate and then looks who is
 * inside; all four in one order for all threads (seq_cst), so one of the two sees the other.
 *
 * The child finds out by a page that a fork wipes, also after _Fork or a raw clone, where no handler runs: the first to enter sees to it
 * that the child goes on (gate_watch). Where somebody else was inside at that moment, the copy may be torn: such a child never goes inside
 * again and lives on the shelter until it ends or execs. */
#ifndef FREESTONE_GATE_H
#define FREESTONE_GATE_H

#include <stdatomic.h>

#include "bits.h"

struct gate {
    _Atomic uint32_t forks;     /* under way, in this process; one for ever in a child that is torn */
    _Atomic uint32_t outsiders; /* inside without a cache of their own */
    _Atomic uint32_t left;      /* goes up when somebody leaves a closed gate; what a fork sleeps on */
    _Atomic uint32_t settling;  /* 1 while the child's first to enter puts things right */
    _Atomic uint32_t *mark;     /* 0 in a child that nobody has put right yet; NULL before gate_open */
};
extern struct gate gate INTERNAL;

/* Called once, before anybody enters. False when memory is out. */
bool gate_open(void);

/* What puts a child right: true when nobody was inside at the fork, and the gate is then open. */
typedef bool gate_child(void);
void gate_watch(gate_child *child);

/* True when the gate is open; asked by who has just said that it is inside. */
static inline bool gate_is_open(void) {
    return likely(atomic_load_explicit(&gate.forks, memory_order_seq_cst) == 0) &&
           likely(atomic_load_explicit(gate.mark, memory_order_relaxed) != 0);
}

/* For who has found it closed and has said that it is not inside after all: tells a fork that waits, and puts a child right. True when
 * the gate may be open now. */
bool gate_found_closed(void);

/* To be called by who has left, while the gate is closed. */
void gate_tell(void);
static inline void gate_left(void) {
    if (unlikely(atomic_load_explicit(&gate.forks, memory_order_relaxed) != 0)) {
        gate_tell();
    }
}

/* Inside without a cache. False when refused. */
bool gate_enter(void);
void gate_leave(void);

/* A fork: closes the gate; true when, within so many milliseconds, nobody is inside any more, which `is_quiet` tells. */
bool gate_close(bool (*is_quiet)(void), uint32_t milliseconds);
void gate_reopen(void);

/* In the child, where a handler runs: for kernels that wipe no page. */
void gate_mark_child(void);

#endif
