/* gate.c and fork.c in the child of a fork, until it has been put right. Thread 0 is the one that forked, with the
 * cache it had; 1 and 2 are born in the child, and any of the three may be the first to come inside. Thread 0 forks
 * once more meanwhile.
 *
 * The child begins with a wiped page: mark 0, and `forks` and `settling` 0 with it. The fork was quiet or not, which
 * the handler in the child knows; thread 0 may be in a frame that a signal has interrupted inside, with a lock.
 *
 * Checked: nobody comes inside before the child is put right, or ever when it is torn; a quiet one is never taken for
 * torn; the locks are reset only while nobody holds one; the forker's cache stays its own, and what another thread has
 * left is adopted once; the second fork finds nobody inside but its own frame, and can itself be put right; nobody
 * waits for ever.
 *
 * fault SETTLING_NOT_WIPED: `settling` does not lie in the wiped page, and a child inherits it
 * fault SETTLING_OPENS: what puts the child right sets `forks` to 0
 * fault SETTLED_BY_TWO: two threads may put the child right at the same time
 * fault ORPHANED_BY_SETTLER: every cache but the settler's is made an orphan
 * fault SETTLED_UNDER_FRAME: the child is put right while the forker is inside
 * fault TORN_UNASKED: whether the fork was quiet is not asked
 * fault TORN_TRIES_AGAIN: who is refused in a torn child tries again
 * fault FLAGS_BELIEVED: the child looks who says `busy`, not whether the fork was quiet
 * fault ADOPTED_UNLOCKED: orphans are taken without the registry's lock
 */
#define NONE 255
#define TORN 2

/* in the wiped page */
byte mark;                      /* 1: put right */
byte forks;
bool settling;

bool quiet;                     /* the handlers': the fork found nobody inside but, perhaps, its own frame */
bool busy[4];                   /* cache 0: the forker's; 1: of a thread that is not here; 2, 3: born here */
bool orphan[2];
bool listed = true;             /* cache 1 */
bool heap_lock, registry;
byte inside;                    /* for the check, of this child's threads */
byte adopted, done;

inline lock_take(lock) { atomic { !lock -> lock = true } }
inline lock_free(lock) { lock = false }

/* put_child_right: all of it may be done again */
inline put_child_right(c) {
    heap_lock = false;
    registry = false;
    assert(inside == 0);
#ifdef ORPHANED_BY_SETTLER
    orphan[0] = (c != 0);
#endif
    orphan[1] = true /* it is in registry.left: what it says of its thread (busy) is void, and nothing in it is written */
}

/* The forker may be inside, in a frame that its fork has interrupted. */
#ifdef SETTLED_UNDER_FRAME
#define is_later(c) false
#else
#define is_later(c) (c != 0 && busy[0])
#endif

#ifdef TORN_UNASKED
#define was_quiet true
#else
#ifdef FLAGS_BELIEVED
#define was_quiet (!busy[1])
#else
#define was_quiet quiet
#endif
#endif

inline settle_child(c, again) {
#ifdef SETTLED_BY_TWO
    again = true;
#else
    atomic { again = !settling; settling = true };
#endif
    if
    :: again ->
        if
        :: mark != 0 -> again = (mark != TORN)
        :: mark == 0 && is_later(c) -> again = false
        :: mark == 0 && !is_later(c) && !was_quiet -> mark = TORN; again = false
        :: mark == 0 && !is_later(c) && was_quiet ->
            put_child_right(c);
#ifdef SETTLING_OPENS
            forks = 0;
#endif
            mark = 1
        fi;
        settling = false
    :: else
    fi
}

inline enter(c, refused, again) {
    do
    :: busy[c] = true;
       refused = (forks != 0 || mark != 1);
       if
       :: !refused -> break
       :: else -> busy[c] = false
       fi;
#ifdef TORN_TRIES_AGAIN
       again = (mark == TORN);
#else
       again = false;
#endif
       if
       :: mark == 0 -> settle_child(c, again)
       :: else
       fi;
       if
       :: again
       :: else -> break
       fi
    od
}

inline leave(c) { busy[c] = false }

/* Inside. */
inline work() {
    atomic { inside++; assert(mark == 1) };
    lock_take(heap_lock);
    lock_free(heap_lock);
    assert(!orphan[0]); /* or the forker's would be taken next */
#ifndef ADOPTED_UNLOCKED
    lock_take(registry);
#endif
    if
    :: orphan[1] && listed -> listed = false; adopted++
    :: else
    fi;
    assert(adopted <= 1);
#ifndef ADOPTED_UNLOCKED
    lock_free(registry);
#endif
    inside--
}

inline come_and_go(c) {
    enter(c, refused, again);
    if
    :: !refused -> work(); leave(c)
    :: else
    fi
}

proctype newborn(byte c) {
    bool refused, again;
    come_and_go(c);
    done++
}

proctype forker() {
    bool refused, again;
    if
    :: busy[0] -> lock_free(heap_lock); inside--; leave(0) /* the frame that was interrupted goes on */
    :: else
    fi;
    if
    :: come_and_go(0)
    :: true
    fi;
    atomic { forks++ };
    (mark == TORN || (!busy[2] && !busy[3])); /* a torn one waits for nothing: its wait times out */
    assert(inside == 0); /* the instant of the second fork */
#ifdef SETTLING_NOT_WIPED
    assert(!settling);
#endif
    atomic { forks-- };
    come_and_go(0);
    done++
}

init {
    bool refused, again;
    atomic {
        if
        :: quiet = true; busy[1] = true /* somebody has just been refused */
        :: quiet = true
        :: quiet = false; busy[1] = true; heap_lock = true
        :: quiet = false /* somebody has left since the wait timed out, or came on another page */
        fi;
        if
        :: quiet -> busy[0] = true; heap_lock = true; inside = 1
        :: true
        fi;
        run forker(); run newborn(2); run newborn(3)
    };
    done == 3;
    come_and_go(0); /* two who hinder each other are both refused; who comes next is not */
    assert(refused == !quiet);
    assert(forks == 0 && inside == 0 && !settling);
    assert(mark == (quiet -> 1 : TORN))
}
