/* The gate: which threads may change the structures that a fork copies.
 *
 * A thread that changes heaps, arena or caches beyond its own loaded magazines is *inside*. A
 * thread with a cache sets the cache's `busy`; other threads are counted (outsiders). A fork closes
 * the gate, waits until no other thread is inside, and then copies structures that are whole and
 * stay so, without holding a lock. If the gate is closed, the thread is refused and allocates from
 * the emergency heap (shelter.h). A signal handler that interrupts its own thread inside is refused
 * too. A refused thread waits some milliseconds at most (turns.h), and a fork waits only for
 * threads that go on without it.
 *
 * No thread is overlooked: a thread that enters sets its mark and then reads the gate; a fork
 * closes the gate and then reads the marks. All four are in one order for all threads (seq_cst), so
 * one of the two sees the other. A refused thread may have set its mark for a moment, and has
 * changed nothing.
 *
 * What a child must not inherit lies on a page that a fork wipes, also _Fork or a raw clone, where
 * no handler runs: it finds a mark of 0, and its first to come puts things right. A copy is whole
 * only where the fork had waited: where it did not (no handler, other threads), or not long enough,
 * the child is torn: it never goes inside and lives on the shelter until it ends or execs. */
#ifndef FREESTONE_GATE_H
#define FREESTONE_GATE_H

#include <stdatomic.h>

#include "bits.h"

enum { GATE_ANY = 0xFFFFFFFF };

enum gate_mark { GATE_CHILD, GATE_RIGHT, GATE_TORN };

/* What the child's handler leaves for who puts it right. */
enum gate_fork {
    GATE_UNHANDLED, /* no handler ran */
    GATE_WHOLE,     /* nobody was inside */
    GATE_INSIDE,    /* nobody but the forking thread, in a frame that a signal interrupted */
    GATE_UNQUIET,   /* somebody was */
};

struct gate_page {
    _Atomic uint32_t mark;     /* enum gate_mark */
    _Atomic uint32_t forks;    /* under way, in this process */
    _Atomic uint32_t settling; /* 1 while somebody puts the child right */
    _Atomic uint32_t leaving;  /* the keeper's, and the next: see keeper.c */
    _Atomic uint32_t keeper;
    _Atomic uint32_t
        process;  /* whose memory this is: 0 the one that the library was loaded in, GATE_ANY the first that asks */
    _Atomic uint32_t fork;     /* enum gate_fork */
    _Atomic(void *) forker;    /* the forking thread: its thread_view's address, and its cache */
    _Atomic(void *) cache;
};

struct gate {
    struct gate_page *page;     /* wiped by forks */
    _Atomic uint32_t outsiders; /* inside without a cache of their own */
    _Atomic uint32_t left;      /* goes up when somebody leaves a closed gate; what a fork sleeps on */
};
extern struct gate gate INTERNAL;

/* Before anybody enters. */
void gate_open(void);

/* Whether the caller runs in the process whose memory this is, and not in one that shares it for a while: a child of vfork. One system call; in
 * a child of fork the first that asks with `settles` is taken for it. */
bool gate_is_own_process(bool settles);

/* What puts a child right, defined above, in fork.c; called by one thread at a time, which is not inside. LATER: only who forked can tell. */
enum gate_answer { GATE_PUT_RIGHT, GATE_PUT_TORN, GATE_LATER };
enum gate_answer gate_put_child_right(void);

/* Whether forks keep it closed. */
static inline bool gate_is_forking(void) { return atomic_load_explicit(&gate.page->forks, memory_order_seq_cst) != 0; }

/* The same of who may come before there is a gate. */
static inline bool gate_is_awaited(void) { return gate.page != NULL && gate_is_forking(); }

/* Whether the gate is open: asked before anything is said, and again by who has just said that it is inside. */
static inline bool gate_is_open(void) {
    return likely(!gate_is_forking()) &&
           likely(atomic_load_explicit(&gate.page->mark, memory_order_acquire) == GATE_RIGHT);
}

/* False in a child that is torn, or not put right yet: what one thread of the parent's was changing is as that thread left it. */
static inline bool gate_is_right(void) {
    return gate.page == NULL || atomic_load_explicit(&gate.page->mark, memory_order_acquire) == GATE_RIGHT;
}

/* In a child that never goes inside. */
static inline bool gate_is_torn(void) {
    return atomic_load_explicit(&gate.page->mark, memory_order_relaxed) == GATE_TORN;
}

/* For who has found it closed and is not inside: puts a child right. True when it is worth another try. */
bool gate_found_closed(void);

/* To be called by who has left. */
void gate_tell(void);
static inline void gate_left(void) {
    if (unlikely(atomic_load_explicit(&gate.page->forks, memory_order_relaxed) != 0)) {
        gate_tell();
    }
}

/* Inside without a cache. False when refused. */
bool gate_enter(void);
void gate_leave(void);

/* A fork closes the gate; true when, within so many milliseconds of waiting, nobody else is inside any more, which `is_quiet` tells. */
bool gate_close(bool (*is_quiet)(void), uint32_t milliseconds);
void gate_reopen(void);

/* Closes it for good, waiting for nobody: the process is about to abort. Threads that go on meanwhile live on the shelter. */
void gate_shut(void);

/* One less, but never less than none: what is counted may be gone already, wiped by a fork or found to be counted twice. seq_cst, as the
 * gate's counts are to be in one order with what was done before. */
void gate_count_down(_Atomic uint32_t *count);

/* In the child, where a handler runs: what it is to be put right by. `forks` of its thread are still under way: one within another's handler.
 * `process` is the child's number, GATE_ANY where it may not be asked for. */
void gate_mark_child(enum gate_fork fork, void *forker, void *cache, uint32_t forks, uint32_t process);

#endif
