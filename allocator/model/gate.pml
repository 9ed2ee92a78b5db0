/* gate.c, fork.c, thread_life.c: threads inside, their ends and their moves between heaps, and forks. Thread 0 goes
 * inside, is interrupted there by a handler that allocates, moves to another heap, and ends. Thread 1 allocates while
 * it holds a lock of libc, which a fork takes behind our handler, and adopts what was left. It forks as well, and
 * so does thread 2. The keeper is inside without a cache.
 *
 * Checked: a child made behind our handlers finds everything whole: no lock held, each block in one place, each heap's
 * count of threads right. So does, at every instant, one made without (_Fork, or a wait that has timed out) that finds
 * nobody inside. No block comes home twice, none is lost. Nobody waits for ever.
 *
 * fault THREAD_ASKS_FIRST: a thread looks at the gate before it says `busy`
 * fault OUTSIDER_ASKS_FIRST: the keeper looks at the gate before it counts itself
 * fault END_UNCOUNTED: a thread that ends gives `busy` up without counting itself among the outsiders first
 * fault LEAVES_WITH_LOCK: `busy` is given up before the heap's lock is
 * fault MOVES_OUTSIDE: a thread moves to another heap after it has left
 * fault FORKS_NOT_COUNTED: the handler in the parent opens the gate also when another thread forks
 * fault REFUSED_WAITS: who is refused waits until the gate is open
 * fault REFUSED_TRIES_AGAIN: who is refused tries again until the gate is open
 * fault FORK_HOLDS_LOCK: the handler before a fork takes the heap's lock and keeps it
 * fault HANDLER_GOES_INSIDE: enter does not refuse a handler that has interrupted its thread inside
 * fault ADOPTED_UNLOCKED: orphans are taken without the registry's lock
 * fault END_FLUSHES_REFUSED: a thread that ends and is refused empties its cache all the same
 */
#define CACHES 2
#define HEAPS 2
#define NONE 255
#define KEEPER 3

typedef cache {
    bool busy, listed, orphan;
    byte previous;              /* the blocks in it, a bit each */
    byte heap
};
cache caches[CACHES];
byte members[HEAPS];            /* threads of each heap */
byte forks, outsiders;
byte registry = NONE;           /* locks, by holder */
byte heap_lock = NONE;
byte libc = NONE;
byte home;                      /* blocks that are free in the heap, a bit each */
byte gone;

inline lock_take(lock, who) { atomic { lock == NONE -> lock = who } }
inline lock_free(lock) { lock = NONE }

/* -- what a child finds -------------------------------------------------------------------------------------- */

/* Each block is in one place, in a cache that is listed or at home; and so with threads and heaps. */
#define in_cache(c) (caches[c].listed -> caches[c].previous : 0)
#define joined(c, h) (caches[c].listed && caches[c].heap == h -> 1 : 0)
#define blocks_are_whole (in_cache(0) + in_cache(1) + home == 3 && (home & (in_cache(0) | in_cache(1))) == 0)
#define heaps_are_whole (members[0] == joined(0, 0) + joined(1, 0) && members[1] == joined(0, 1) + joined(1, 1))
#define nobody_inside (!caches[0].busy && !caches[1].busy && outsiders == 0)
#define is_whole (heap_lock == NONE && blocks_are_whole && heaps_are_whole)

/* -- inside -------------------------------------------------------------------------------------------------- */

inline enter(c, refused) {
#ifdef THREAD_ASKS_FIRST
    refused = (forks != 0);
    caches[c].busy = !refused
#else
    caches[c].busy = true;
    refused = (forks != 0);
    if
    :: refused -> caches[c].busy = false
    :: else
    fi
#endif
#ifdef REFUSED_WAITS
    ;
    do
    :: refused -> forks == 0; caches[c].busy = true; refused = (forks != 0); caches[c].busy = !refused
    :: else -> break
    od
#endif
#ifdef REFUSED_TRIES_AGAIN
    ;
    do
    :: refused -> caches[c].busy = true; refused = (forks != 0); caches[c].busy = !refused
    :: else -> break
    od
#endif
}

inline leave(c) { caches[c].busy = false }

/* In the heap's lock: the block of the cache goes home, in two steps. */
inline flush(c, who, set) {
    set = caches[c].previous;
    assert((home & set) == 0);
    home = home | set;
    caches[c].previous = 0;
    set = 0
}

/* A signal comes; its handler allocates. */
inline handler(c, who) {
    if
#ifdef HANDLER_GOES_INSIDE
    :: true -> lock_take(heap_lock, who); lock_free(heap_lock)
#else
    :: caches[c].busy /* refused */
#endif
    :: true
    fi
}

inline heap_move(c) {
    members[caches[c].heap]--;
    caches[c].heap = 1 - caches[c].heap;
    members[caches[c].heap]++
}

inline adopt_some(who, set) {
#ifndef ADOPTED_UNLOCKED
    lock_take(registry, who);
#endif
    if
    :: caches[0].orphan && caches[0].listed ->
        lock_take(heap_lock, who);
        flush(0, who, set);
        lock_free(heap_lock);
        members[caches[0].heap]--;
        caches[0].listed = false
    :: else
    fi
#ifndef ADOPTED_UNLOCKED
    ;
    lock_free(registry)
#endif
}

inline outsider_enter(refused) {
#ifdef OUTSIDER_ASKS_FIRST
    refused = (forks != 0);
    atomic { outsiders = outsiders + (refused -> 0 : 1) }
#else
    outsiders++;
    refused = (forks != 0);
    if
    :: refused -> outsiders--
    :: else
    fi
#endif
}

/* -- forks --------------------------------------------------------------------------------------------------- */

#ifdef CYCLES /* one step: two who look in turn, for ever, would keep the others from the registry's lock */
inline is_quiet(own, who, quiet) {
    atomic {
        quiet = registry == NONE && outsiders == 0 && (own == 0 || !caches[0].listed || !caches[0].busy) &&
                (own == 1 || !caches[1].listed || !caches[1].busy)
    }
}
#else
inline is_quiet(own, who, quiet) {
    if
    :: atomic { registry == NONE -> registry = who }; /* lock_try */
       quiet = (own == 0 || !caches[0].listed || !caches[0].busy);
       quiet = quiet && (own == 1 || !caches[1].listed || !caches[1].busy);
       quiet = quiet && outsiders == 0;
       lock_free(registry)
    :: registry != NONE -> quiet = false
    fi
}
#endif

inline fork(own, who, quiet) {
#ifdef FORK_HOLDS_LOCK
    lock_take(heap_lock, who);
    lock_take(libc, who);
    lock_free(libc);
    lock_free(heap_lock)
#else
    atomic { forks++ };
    do
    :: is_quiet(own, who, quiet);
       if
       :: quiet -> break
       :: else
       fi
    od;
    quiet = false;
    lock_take(libc, who);
    assert(is_whole); /* the instant of the fork; who is refused may be saying `busy` all the same */
    lock_free(libc);
#ifdef FORKS_NOT_COUNTED
    forks = 0
#else
    atomic { forks-- }
#endif
#endif
}

/* -- who runs ------------------------------------------------------------------------------------------------ */

proctype worker() { /* cache 0 */
    bool refused;
    byte set;
    enter(0, refused);
    if
    :: !refused ->
        lock_take(heap_lock, 0);
        handler(0, 0);
        flush(0, 0, set);
#ifdef LEAVES_WITH_LOCK
        leave(0);
        lock_free(heap_lock)
#else
        lock_free(heap_lock);
#ifdef MOVES_OUTSIDE
        leave(0);
        heap_move(0)
#else
        heap_move(0);
        leave(0)
#endif
#endif
    :: else
    fi;
    enter(0, refused); /* end_thread */
#ifdef END_FLUSHES_REFUSED
    refused = false;
#endif
    if
    :: !refused -> /* give_up_cache */
        lock_take(heap_lock, 0);
        flush(0, 0, set);
        lock_free(heap_lock);
#ifdef END_UNCOUNTED
        caches[0].busy = false;
        outsiders++;
#else
        outsiders++;
#endif
        lock_take(registry, 0);
        caches[0].listed = false;
        lock_free(registry);
        caches[0].busy = false;
        members[caches[0].heap]--;
        outsiders--
    :: else -> caches[0].orphan = true
    fi;
    gone++
}

proctype printer() { /* cache 1 */
    bool refused, quiet;
    byte set;
    lock_take(libc, 1);
    enter(1, refused);
    if
    :: !refused ->
        lock_take(heap_lock, 1);
        flush(1, 1, set);
        lock_free(heap_lock);
        adopt_some(1, set);
        leave(1)
    :: else
    fi;
    lock_free(libc);
    fork(1, 1, quiet);
    gone++
}

proctype forker() { /* its cache is empty, and left out */
    bool quiet;
    fork(NONE, 2, quiet);
    gone++
}

proctype keeper() {
    bool refused;
    byte set;
    outsider_enter(refused);
    if
    :: !refused -> adopt_some(KEEPER, set); outsiders--
    :: else
    fi;
    gone++
}

/* A child that is made at any instant, by whatever means, of a thread that is not inside. */
proctype child() { atomic { nobody_inside -> assert(is_whole) } }

init {
    atomic {
        caches[0].listed = true; caches[0].previous = 1;
        caches[1].listed = true; caches[1].previous = 2;
        members[0] = 2;
        run worker(); run printer(); run forker(); run keeper(); run child()
    };
    gone == 4;
    assert(forks == 0 && nobody_inside && is_whole)
}
