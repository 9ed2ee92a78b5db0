/* borrow.c and thread_life.c: a cache, its thread, and who borrows it. Thread 0 frees by the fast path, goes inside
 * when its loaded magazine is full, begins to take, ends, and is born again with a cache that somebody gave up; thread
 * 1 goes inside and there empties what others do not use, as when memory is out; the keeper does the same.
 *
 * Checked: no block comes home twice, or before it was freed, and at the end all are home; a borrowed cache stays its
 * thread's; nobody waits for ever.
 *
 * fault OWNER_ASKS_FIRST: the thread asks whether its cache is borrowed before it says `busy`
 * fault BORROWER_ASKS_FIRST: the borrower asks whether the thread is inside before it says `borrowed`
 * fault BORROWER_NEVER_ASKS: the borrower does not ask whether the thread is inside
 * fault BORROWERS_TOGETHER: there is no lock between borrowers
 * fault OUT_BEFORE_UNLINKED: a thread that ends says that it is not inside while its cache is still listed
 * fault OUT_AFTER_KEPT: ... or only when somebody else may have been given the cache
 * fault ASKS_UNTIL_OUT: the borrower asks again until the thread is not inside
 * fault TOP_BEFORE_BLOCK: a push writes the top before the block
 * fault TOP_READ_AGAIN: the bottom is raised to where the top is by then, not to where it was noted
 * fault TAKEN_IGNORED: also what the thread pops from is emptied
 */
#define CACHES 2
#define WORDS 3 /* of a magazine; word 0 is the NULL below its lowest block */
#define BLOCKS 3
#define NONE 255

typedef cache {
    bool busy, borrowed, listed, used, taken;
    byte previous;              /* the blocks in it, a bit each */
    byte top, bottom;           /* of the loaded magazine */
    byte word[WORDS]
};
cache caches[CACHES];
bool registry, borrowing;       /* locks */
byte home;                      /* blocks that are free in the heap, a bit each */
byte freed;                     /* for the check: blocks that the program has freed */
byte gone;                      /* threads that have ended */

#define bit_of(block) (1 << ((block) - 1))

inline lock_take(lock) { atomic { !lock -> lock = true } }
inline lock_free(lock) { lock = false }

inline go_home(set) {
    atomic {
        assert((home & (set)) == 0);        /* handed over twice */
        assert(((set) & ~freed) == 0);      /* the program has it */
        home = home | (set)
    }
}

/* cache_flush_previous: by the thread, inside, or by who has borrowed the cache */
inline flush_previous(c, set) {
    set = caches[c].previous;
    if
    :: set != 0 -> go_home(set); caches[c].previous = 0
    :: else
    fi;
    set = 0
}

/* The blocks in the loaded magazine up to there. */
inline gather(c, upto, word, set) {
    word = caches[c].bottom + 1;
    do
    :: word <= upto ->
        assert(caches[c].word[word] != 0);
        set = set | bit_of(caches[c].word[word]);
        word++
    :: else -> break
    od;
    word = 0
}

/* -- its thread ---------------------------------------------------------------------------------------------- */

inline enter(c) {
    do
    ::
#ifdef OWNER_ASKS_FIRST
        !caches[c].borrowed;
        caches[c].busy = true;
        break
#else
        caches[c].busy = true;
        if
        :: !caches[c].borrowed -> break
        :: else -> caches[c].busy = false; !caches[c].borrowed /* cache_step_aside */
        fi
#endif
    od
}

inline leave(c) { caches[c].busy = false }

inline push(c, block) {
#ifdef TOP_BEFORE_BLOCK
    caches[c].top++;
    caches[c].word[caches[c].top] = block
#else
    caches[c].word[caches[c].top + 1] = block;
    caches[c].top++
#endif
}

/* Room in the loaded magazine: it becomes the previous one. */
inline make_room(c, word, set) {
    flush_previous(c, set);
    gather(c, caches[c].top, word, set);
    caches[c].previous = set;
    set = 0;
    atomic { caches[c].top = 0; caches[c].bottom = 0 }
}

inline free_block(c, block, word, set) {
    atomic { freed = freed | bit_of(block) };
    if
    :: caches[c].top == WORDS - 1 -> /* full */
        enter(c);
        make_room(c, word, set);
        push(c, block);
        leave(c)
    :: else -> push(c, block)
    fi
}

/* malloc's fast path, once blocks are taken from the slot. */
inline pop(c, block) {
    block = caches[c].word[caches[c].top];
    caches[c].top--;
    atomic {
        assert((home & bit_of(block)) == 0);
        assert((freed & bit_of(block)) != 0);
        freed = freed & ~bit_of(block)
    }
}

inline new_cache(c) {
    lock_take(registry);
    atomic { /* any that is unused */
        if
        :: !caches[0].used -> c = 0
        :: !caches[1].used -> c = 1
        fi;
        caches[c].used = true;
        caches[c].busy = false;
        caches[c].borrowed = false;
        caches[c].taken = false;
        caches[c].listed = true
    };
    lock_free(registry)
}

inline give_up_cache(c, word, set) {
    enter(c);
    flush_previous(c, set);
    gather(c, caches[c].top, word, set);
    go_home(set);
    set = 0;
    atomic { caches[c].top = 0; caches[c].bottom = 0 };
#ifdef OUT_BEFORE_UNLINKED
    caches[c].busy = false;
#endif
    lock_take(registry);
    caches[c].listed = false;
    lock_free(registry);
#ifdef OUT_AFTER_KEPT
    caches[c].used = false;
#endif
    caches[c].busy = false;
    caches[c].used = false /* keep_unused */
}

/* -- a borrower ---------------------------------------------------------------------------------------------- */

inline deliver(c, word, set, noted) {
    noted = caches[c].top;
    gather(c, noted, word, set);
#ifdef TOP_READ_AGAIN
    caches[c].bottom = caches[c].top;
#else
    caches[c].bottom = noted;
#endif
    go_home(set);
    set = 0;
    noted = 0
}

inline borrow(c, mine) {
#ifdef BORROWER_ASKS_FIRST
    mine = !caches[c].busy;
    if
    :: mine -> caches[c].borrowed = true
    :: else
    fi
#else
    caches[c].borrowed = true;
#ifdef BORROWER_NEVER_ASKS
    mine = true
#else
    mine = !caches[c].busy;
    if
    :: !mine -> caches[c].borrowed = false /* give_back */
    :: else
    fi
#endif
#endif
}

/* borrow_caches; `but` is the caller's own */
inline borrow_caches(but, c, mine, word, set, noted) {
#ifndef BORROWERS_TOGETHER
    lock_take(borrowing);
#endif
    c = 0;
    do
    :: c < CACHES ->
        lock_take(registry);
        mine = false;
        if
        :: caches[c].listed && c != but ->
            borrow(c, mine)
#ifdef ASKS_UNTIL_OUT
            ;
            do
            :: !mine && caches[c].listed -> borrow(c, mine)
            :: else -> break
            od
#endif
        :: else
        fi;
        lock_free(registry);
        if
        :: mine -> /* relieve */
            flush_previous(c, set);
            if
#ifdef TAKEN_IGNORED
            :: true -> deliver(c, word, set, noted)
#else
            :: !caches[c].taken -> deliver(c, word, set, noted)
            :: else
#endif
            fi;
            caches[c].borrowed = false /* give_back */
        :: else
        fi;
        c++
    :: else -> break
    od;
    c = 0;
    mine = false;
#ifndef BORROWERS_TOGETHER
    lock_free(borrowing)
#endif
}

/* -- who runs ------------------------------------------------------------------------------------------------ */

proctype worker() {
    byte c, word, set, block;
    new_cache(c);
    free_block(c, 1, word, set);
    free_block(c, 2, word, set);
    if
    :: free_block(c, 3, word, set)
    :: enter(c); /* begin_taking */
       caches[c].taken = true;
       leave(c);
       if
       :: caches[c].top > caches[c].bottom -> pop(c, block); free_block(c, block, word, set); block = 0
       :: else
       fi
    fi;
    give_up_cache(c, word, set);
    if
    :: (freed & 4) == 0 -> new_cache(c); free_block(c, 3, word, set); give_up_cache(c, word, set)
    :: else
    fi;
    gone++
}

proctype reclaimer() {
    byte own, c, word, set, noted;
    bool mine;
    new_cache(own);
    enter(own);
    borrow_caches(own, c, mine, word, set, noted);
    leave(own);
    give_up_cache(own, word, set);
    gone++
}

proctype keeper() {
    byte c, word, set, noted;
    bool mine;
    borrow_caches(NONE, c, mine, word, set, noted);
    gone++
}

init {
    atomic { run worker(); run reclaimer(); run keeper() };
    gone == 3;
    assert(home == freed)
}
