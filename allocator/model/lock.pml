/* lock.c: mutual exclusion and no lost wake-up. Three threads take the lock twice each.
 *
 * A futex is compared and slept on in one step (the kernel's promise); a wake lets one sleeper go, any of them.
 *
 * fault CLAIM_IN_TWO_STEPS: lock_take reads the state and then writes it, in two steps
 * fault FREE_WAKES_NOBODY: lock_free never wakes
 * fault WAITER_FORGETS_OTHERS: lock_wait takes a free lock with state 1, as if nobody slept
 * fault HOLDER_GOES_ON: who holds the lock goes on for ever, so that it is never free again
 * fault SLEEP_UNCOMPARED: os_wait sleeps whatever the state is by then
 */
#define THREADS 3
#define TIMES 2

byte state;             /* 0 free, 1 held, 2 held with (perhaps) sleepers */
byte holders;           /* for the check */
bool asleep[THREADS];

inline os_wait(me) {
#ifdef SLEEP_UNCOMPARED
    asleep[me] = true;
    !asleep[me]
#else
    if
    :: atomic { state == 2 -> asleep[me] = true }; !asleep[me]
    :: state != 2
    fi
#endif
}

inline os_wake() {
    atomic {
        if
        :: asleep[0] -> asleep[0] = false
        :: asleep[1] -> asleep[1] = false
        :: asleep[2] -> asleep[2] = false
        :: !asleep[0] && !asleep[1] && !asleep[2]
        fi
    }
}

inline exchange(word, value, before) { atomic { before = word; word = value } }

inline lock_wait(me, seen) {
    if /* it spins, and finds the lock free: or not */
    :: atomic { state == 0 -> state = 1 }; seen = 0
    :: seen = 1
    fi;
    do
    :: seen == 0 -> break
    :: else ->
#ifdef WAITER_FORGETS_OTHERS
        atomic { seen = state; state = (seen == 0 -> 1 : 2) };
#else
        exchange(state, 2, seen);
#endif
        if
        :: seen != 0 -> os_wait(me)
        :: else
        fi
    od
}

inline lock_take(me, seen) {
#ifdef CLAIM_IN_TWO_STEPS
    seen = state;
    if
    :: seen == 0 -> state = 1
    :: else -> lock_wait(me, seen)
    fi
#else
    if
    :: atomic { state == 0 -> state = 1 }
    :: state != 0 -> lock_wait(me, seen)
    fi
#endif
}

inline lock_free(seen) {
#ifdef HOLDER_GOES_ON
    do
    :: seen = state
    od;
#endif
    exchange(state, 0, seen);
    if
#ifndef FREE_WAKES_NOBODY
    :: seen == 2 -> os_wake()
#endif
    :: else
    fi
}

proctype thread(byte me) {
    byte seen, times;
    do
    :: times < TIMES ->
        lock_take(me, seen);
        holders++;
        assert(holders == 1);
        holders--;
        lock_free(seen);
        times++
    :: else -> break
    od
}

init { atomic { run thread(0); run thread(1); run thread(2) } }
