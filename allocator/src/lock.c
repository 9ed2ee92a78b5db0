#include "lock.h"

#include "os.h"
#include "patience.h"

/* Tries before sleeping. Critical sections are a refill or a flush, about a microsecond; a pause is 40 to 140 cycles.
 * Short, because with more threads than CPUs the holder may be the one that is not running. */
enum { SPINS = 40 };

enum { PATIENCE_MS = 20 }; /* a holder that goes on has had its turn by then, also where several threads share a CPU */

/* Set once, on the way to abort. Relaxed: whoever sees it late only waits a little longer. */
static _Atomic bool abandoned;

void lock_abandon_all(void) { atomic_store_explicit(&abandoned, true, memory_order_relaxed); }

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

OUT_OF_LINE void lock_wait(struct lock *lock) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (unlikely(atomic_load_explicit(&abandoned, memory_order_relaxed))) {
            return;
        }
        uint32_t seen = atomic_load_explicit(&lock->state, memory_order_relaxed);
        if (seen == 0 &&
            atomic_compare_exchange_weak_explicit(&lock->state, &seen, 1, memory_order_acquire, memory_order_relaxed)) {
            return;
        }
        if (seen == 2) {
            break; /* others sleep already: spinning would jump their queue for long */
        }
        pause_cpu();
    }
    /* Marks the lock contended whether or not it was free: at worst one needless wake later. Acquire as in lock_take:
     * an exchange that reads 0 has taken the lock. */
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0) {
        if (unlikely(atomic_load_explicit(&abandoned, memory_order_relaxed))) {
            return;
        }
        os_wait(&lock->state, 2);
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
        taken = atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) == 0 ||
                atomic_load_explicit(&abandoned, memory_order_relaxed);
        if (!taken) {
            bool slept = os_wait_for(&lock->state, 2, 1);
            ended = patience_ended(patience, slept, 1, PATIENCE_MS);
        }
    }
    return taken;
}

OUT_OF_LINE void lock_wake(struct lock *lock) { os_wake(&lock->state); }
