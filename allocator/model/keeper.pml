/* keeper.c: wish, start, refused start, end, and its leave before a fork. Two threads have work and wish; a third
 * forks.
 *
 * Checked: there is one keeper at most, and none at the instant of a fork; no wish is lost: work that was wished for
 * was done, or the wish is still open when everybody has gone, so that the next slow path starts a keeper. Nobody
 * waits for ever. (`ending` is left out: nothing here depends on it.)
 *
 * fault CLAIM_IN_TWO_STEPS: keeper_serve reads `alive` and then writes it, in two steps
 * fault ENDS_WITHOUT_LAST_ASK: may_end does not ask for a wish
 * fault ASKS_BEFORE_WISH: a thread asks whether the keeper lives before it has written its wish
 * fault LEAVES_WITHOUT_WISH: a keeper that was told to leave does not leave an open wish behind
 * fault CUT_SHORT_AND_ENDS: a keeper whose look was cut short may end as if it had found nothing
 * fault LEAVING_ASKED_ONCE: keeper_serve does not ask for forks again once it has claimed `alive`
 * fault REFUSED_STAYS_CLAIMED: a start that the kernel refused does not give `alive` back
 * fault WISHED_UNTOLD: keeper_leave wishes the keeper awake, does not tell it to leave, and waits
 * fault TOLD_WITHOUT_WAITING: keeper_leave tells the keeper to leave and does not wait
 */
bool work;      /* freed memory that lies about */
bool wished, told, alive;
byte leaving;   /* forks under way */
byte keepers;   /* for the check: threads that are one */
byte done;

inline keeper_wish() { wished = true }

inline may_end(ends) {
#ifdef ENDS_WITHOUT_LAST_ASK
    wished = false;
    ends = true
#else
    atomic { ends = !wished; wished = false }
#endif
}

proctype keeper() { /* live */
    bool ends, hoped;
    keepers++;
    assert(keepers == 1);
    do
    :: told -> /* sleep_for */
#ifndef LEAVES_WITHOUT_WISH
        wished = true;
#endif
        break
    :: else ->
        atomic { hoped = wished; wished = false };
        if /* the look; it stops where it is told to leave */
        :: !told -> work = false
        :: told
        fi;
        if
#ifdef CUT_SHORT_AND_ENDS
        :: !hoped -> may_end(ends)
#else
        :: !hoped && !told -> may_end(ends)
#endif
        :: else
        fi;
        if
        :: ends -> break
        :: else
        fi
    od;
    atomic { keepers--; alive = false } /* by the kernel, when the thread is gone */
}

#ifdef LEAVING_ASKED_ONCE
#define may_start() true
#else
#define may_start() (leaving == 0)
#endif

inline keeper_serve() {
    if
    :: alive ->
        skip /* it will see the wish, or the wish stays open for the next slow path */
    :: leaving != 0
    :: !alive && leaving == 0 ->
#ifdef CLAIM_IN_TWO_STEPS
        alive = true;
        claimed = true;
#else
        atomic { claimed = !alive; alive = true };
#endif
        if
        :: claimed && may_start() ->
            told = false;
            if
            :: run keeper()
#ifdef REFUSED_STAYS_CLAIMED
            :: true
#else
            :: alive = false /* the kernel refuses */
#endif
            fi
        :: claimed && !may_start() -> alive = false
        :: !claimed
        fi
    fi
}

inline keeper_leave() {
    atomic { leaving++ };
    do
    :: !alive -> break
    :: else ->
        keeper_wish();
#ifndef WISHED_UNTOLD
        told = true;
#endif
#ifdef TOLD_WITHOUT_WAITING
        break
#endif
    od
}

inline keeper_return() { atomic { leaving-- } }

proctype thread() {
    bool claimed, asked;
#ifdef ASKS_BEFORE_WISH
    asked = alive;
    work = true;
    if
    :: !asked -> keeper_wish(); keeper_serve()
    :: else /* it lives, and will look */
    fi;
#else
    work = true;
    keeper_wish();
    keeper_serve();
#endif
    done++
}

proctype forker() {
    keeper_leave();
    assert(keepers == 0);
    keeper_return();
    done++
}

init {
    atomic { run thread(); run thread(); run forker() };
    (done == 3 && !alive);
    assert(keepers == 0);
    assert(!work || wished)
}
