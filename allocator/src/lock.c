#include "lock.h"

#include "os.h"
#include "patience.h"

/* Tries before sleeping. Critical sections are a refill or a flush, about a microsecond; a pause is 40 to 140 cycles.
 * Short, because with more threads than CPUs the holder may be the one that is not running. */
enum { SPINS = 40 };

enum { PATIENCE_MS = 20 }; /* a holder that goes on has had its turn by then, also where several threads share a CPU */

enum {
    LOOK_MS = 1000, /* a sleeper looks whether there is a report: critical sections are shorter by far */
    REPORT_NAP_MS = 5,
    TAKEN_OVER_MS = 5000, /* by other threads than the one that reports */
    REPORT_MS = 10000, /* that a second thread waits before it reports too */
};

/* The kernel's number of the thread that reports; 0: none. Relaxed: whoever sees it late only waits a little longer. A fork's child has the number of
 * a thread that it does not have. */
static _Atomic uint32_t reporter;

void lock_report(void) {
    uint32_t own = os_thread(), other = 0;
    struct patience patience = patience_begin();
    while (
        !atomic_compare_exchange_strong_explicit(&reporter, &other, own, memory_order_relaxed, memory_order_relaxed) &&
        other != own) {
        if (!os_has_thread(other) || patience_ended(&patience, true, REPORT_NAP_MS, REPORT_MS)) {
            atomic_store_explicit(&reporter, own, memory_order_relaxed);
            break;
        }
        os_nap(REPORT_NAP_MS);
        other = 0;
    }
}

bool lock_try(struct lock *lock) {
    uint32_t free_state = 0;
    return atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* While there is a report. Who takes the lock over adds to the state, so that of several who have waited one does. */
static OUT_OF_LINE void wait_beside_report(struct lock *lock) {
    enum { SLEEPERS = 2 };
    uint32_t limit = atomic_load_explicit(&reporter, memory_order_relaxed) == os_thread() ? PATIENCE_MS : TAKEN_OVER_MS;
    struct patience patience = patience_begin();
    uint32_t holder = 0;
    for (bool ended = false;;) {
        uint32_t seen = atomic_load_explicit(&lock->state, memory_order_relaxed);
        if (seen != holder && seen > SLEEPERS) { /* another has taken it over, and goes on */
            patience = patience_begin();
            ended = false;
        }
        holder = seen;
        uint32_t marked = seen < SLEEPERS ? SLEEPERS : seen;
        uint32_t next = seen != 0 && ended ? marked + 1 : marked;
        /* acquire: as in lock_take */
        if (next != seen && !atomic_compare_exchange_strong_explicit(&lock->state, &seen, next, memory_order_acquire,
                                                                     memory_order_relaxed)) {
            continue;
        }
        if (seen == 0 || next > marked) {
            return;
        }
        bool slept = os_wait_for(&lock->state, next, REPORT_NAP_MS);
        ended = patience_ended(&patience, slept, REPORT_NAP_MS, limit);
    }
}

OUT_OF_LINE void lock_wait(struct lock *lock) {
    for (int spin = 0; spin < SPINS; spin++) {
        uint32_t seen = atomic_load_explicit(&lock->state, memory_order_relaxed);
        if (seen == 0 &&
            atomic_compare_exchange_weak_explicit(&lock->state, &seen, 1, memory_order_acquire, memory_order_relaxed)) {
            return;
        }
        if (seen > 1) {
            break; /* others sleep already: spinning would jump their queue for long */
        }
        pause_cpu();
    }
    if (unlikely(atomic_load_explicit(&reporter, memory_order_relaxed) != 0)) {
        wait_beside_report(lock);
        return;
    }
    /* Marks the lock contended whether or not it was free: at worst one needless wake later. Acquire as in lock_take:
     * an exchange that reads 0 has taken the lock. */
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0) {
        os_wait_for(&lock->state, 2, LOOK_MS);
        if (unlikely(atomic_load_explicit(&reporter, memory_order_relaxed) != 0)) {
            wait_beside_report(lock);
            return;
        }
    }
}

OUT_OF_LINE bool lock_take_within(struct lock *lock, struct patience *patience) {
    if (patience == NULL) {
        lock_take(lock);
        return true;
    }
    bool ended = patience->waited > (uint64_t)PATIENCE_MS * 1000000;
    bool taken = lock_try(lock);
    /* Marked and acquired as in lock_wait; the mark stays where nobody waits any more: at worst one needless wake. */
    while (!taken && !ended) {
        taken = atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) == 0;
        if (!taken) {
            bool slept = os_wait_for(&lock->state, 2, 1);
            ended = patience_ended(patience, slept, 1, PATIENCE_MS);
        }
    }
    return taken;
}

OUT_OF_LINE void lock_wake(struct lock *lock) { os_wake(&lock->state); }
