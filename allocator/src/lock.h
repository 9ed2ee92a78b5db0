/* A mutual-exclusion lock of four bytes: spins briefly, then sleeps. Leaf above os.
 *
 * States: 0 free, 1 held, 2 held with (perhaps) sleepers; 3 and more the same, taken over that often from a holder that does not go on.
 * Acquire on taking and release on freeing order everything the lock protects; no other ordering is relied on. A zeroed lock is free, so static locks need no set-up, and a
 * forked child frees its parent's locks by zeroing them. */
#ifndef FREESTONE_LOCK_H
#define FREESTONE_LOCK_H

#include <stdatomic.h>

#include "bits.h"

struct patience;

struct lock {
    _Atomic uint32_t state;
};

/* The calling thread reports a misuse and is about to abort the process, perhaps with locks, which it never frees. A handler of SIGABRT that needs
 * one, on this thread, takes it over after 20 ms. Another thread does so after five seconds: a holder that goes on frees a lock within
 * microseconds, and a handler may wait for that thread. A second thread that reports waits for the first, ten seconds at most. */
void lock_report(void);

void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);

/* Takes the lock if it is free now. */
bool lock_try(struct lock *lock);

/* For who can do without: waits some milliseconds at most, of all that it waits with the same `patience`, and without a limit where that is NULL.
 * False without the lock, whose holder may be a thread that never goes on: one that a signal's handler has stopped. */
bool lock_take_within(struct lock *lock, struct patience *patience);

static inline void lock_take(struct lock *lock) {
    uint32_t seen = 0;
    /* acquire: what the last holder wrote is visible from here on */
    if (unlikely(!atomic_compare_exchange_strong_explicit(&lock->state, &seen, 1, memory_order_acquire,
                                                          memory_order_relaxed))) {
        lock_wait(lock);
    }
}

static inline void lock_free(struct lock *lock) {
    /* release: what this holder wrote is visible to the next */
    if (unlikely(atomic_exchange_explicit(&lock->state, 0, memory_order_release) > 1)) {
        lock_wake(lock);
    }
}

/* For the child of a fork, where no other thread exists: whoever held or awaited it is gone. Writes only if there is need, since each page that a
 * child writes to is copied. */
static inline void lock_reset(struct lock *lock) {
    if (atomic_load_explicit(&lock->state, memory_order_relaxed) != 0) {
        atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
    }
}

#endif
