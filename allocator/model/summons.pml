/* borrow.c and sampling.c: who has borrowed a cache withholds the magazine that its thread pops from and pushes to, and the thread gets it back
 * when it comes inside. The thread's fast paths read the top, then a word, then write the top, and anything may happen
 * in between.
 *
 * Checked: no block is handed out that the program has, none is lost: at the end the magazine holds what the program has not.
 *
 * fault STORED: the top of the void is written without a look at what is there by then
 * fault ANSWERED_ALWAYS: what was noted is loaded, also where the slot is not void
 * fault NOBODY_ASKED: the borrower does not ask whether the thread is inside
 */
#define WORDS 4 /* of the magazine; word 0 is the NULL below its lowest block */
#define BLOCKS 2
#define VOID 255 /* the top of what is empty to a pop and full to a push */

bool busy, borrowed, out, ended;
byte top;                       /* the slot's */
byte noted = VOID;              /* the withheld one */
byte word[WORDS];
byte held;                      /* blocks that the program has, a bit each */

#define bit_of(block) (1 << ((block) - 1))

/* -- the thread ----------------------------------------------------------------------------------------------- */

/* sampling_answer */
inline answer() {
    if
    :: out ->
        if
#ifdef ANSWERED_ALWAYS
        :: noted != VOID -> top = noted
#else
        :: noted != VOID && top == VOID -> top = noted
#endif
        :: else
        fi;
        noted = VOID;
        out = false
    :: else
    fi
}

inline enter() {
    do
    :: busy = true;
       if
       :: !borrowed -> break
       :: else -> busy = false; !borrowed /* cache_step_aside */
       fi
    od;
    answer()
}

inline leave() { busy = false }

inline hand_out(block) {
    atomic {
        assert(block != 0);
        assert((held & bit_of(block)) == 0);
        held = held | bit_of(block)
    }
}

/* Inside: the slot is the thread's. An empty magazine has nothing to give; that there might be more elsewhere is left out. */
inline take_inside(read, block) {
    enter();
    assert(top != VOID);
    read = top;
    top = VOID;                 /* slot_unload: a handler of a signal finds nothing */
    if
    :: read > 0 -> block = word[read]; hand_out(block); read--
    :: else
    fi;
    top = read;                 /* slot_load */
    leave();
    read = 0
}

inline pop(read, block) {
    read = top;
    if
    :: read == VOID || read == 0 -> take_inside(read, block)
    :: else ->
        block = word[read];
        top = read - 1;
        hand_out(block)
    fi;
    read = 0
}

inline give_inside(read, block) {
    enter();
    assert(top != VOID);
    read = top;
    top = VOID;
    assert(read < WORDS - 1);
    word[read + 1] = block;
    top = read + 1;
    leave();
    read = 0
}

inline push(read, block) {
    atomic { assert((held & bit_of(block)) != 0); held = held & ~bit_of(block) };
    read = top;
    if
    :: read == VOID -> give_inside(read, block)
    :: else ->
        word[read + 1] = block;
        top = read + 1
    fi;
    read = 0;
    block = 0
}

proctype worker() {
    byte read, block, turn;
    do
    :: turn < 3 ->
        pop(read, block);
        if
        :: block != 0 -> push(read, block)
        :: else
        fi;
        block = 0;
        turn++
    :: turn < 3 -> /* comes inside for something else */
        enter();
        leave();
        turn++
    :: turn == 3 -> break
    od;
    pop(read, block);
    enter();                    /* to end */
    ended = true;
    leave()
}

/* -- the borrower ---------------------------------------------------------------------------------------------- */

/* borrow_to_summon, withhold */
proctype keeper() {
    byte read, round;
    do
    :: round < 2 && !ended ->
        borrowed = true;
        if
#ifdef NOBODY_ASKED
        :: !out ->
#else
        :: !busy && !out ->
#endif
            out = true;
            read = top;
            if
            :: read != VOID ->
                noted = read;
#ifdef STORED
                top = VOID
#else
                atomic { /* compare and swap */
                    if
                    :: top == read -> top = VOID
                    :: else -> read = VOID
                    fi
                };
                if
                :: read == VOID -> noted = VOID
                :: else
                fi
#endif
            :: else
            fi
        :: else
        fi;
        borrowed = false;       /* give_back */
        read = 0;
        round++
    :: else -> break
    od
}

init {
    atomic {
        word[1] = 1;
        word[2] = 2;
        top = 2;
        run worker();
        run keeper()
    };
    _nr_pr == 1;
    /* What was withheld after the thread's end is there for who empties the cache. */
    answer();
    assert(top == BLOCKS - (held != 0));
    assert(held == 0 || word[1] + word[2] != 0);
    if
    :: top == 2 -> assert(word[1] != word[2])
    :: else -> assert(top == 1 && held == bit_of(3 - word[1]))
    fi
}
