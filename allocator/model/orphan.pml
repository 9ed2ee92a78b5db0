/* thread_life.c: take_orphan and thread_adopt_some. Two threads end while they are refused, and leave a cache each; two others adopt what was
 * left, a slot at a time: the cache is unlinked, some of it flushed, and linked again, until nothing is left. They come only while
 * orphans are counted.
 *
 * Checked: nobody flushes what another has in hand; no orphan is forgotten: once everybody has gone, whatever is left is counted. A count
 * that is too high, of a thread that a child has counted twice, is put right.
 *
 * fault HAND_UNCOUNTED: who finds no orphan in the list sets the count to 0 although another has one in hand
 * fault NEVER_ZEROED: who finds no orphan leaves the count as it is
 * fault COUNTED_FIRST: a thread that ends counts itself before it marks its cache
 * fault ZEROED_UNCOMPARED: the count is set to 0 although somebody has counted himself since it was read
 * fault COUNTED_DOWN_UNLOCKED: an adopter that is through counts down after it has given the lock back
 * fault ADOPTED_UNLOCKED: orphans are taken without the registry's lock
 */
#define SLOTS 2
#define NONE 255

bool listed[2] = true;
bool orphan[2];
byte slots[2];                  /* that still hold blocks */
byte orphans = 1;               /* one was counted twice */
byte adopting;                   /* unlinked for a while; under the lock */
byte flushing[2];               /* for the check */
bool registry;
byte gone;

#ifdef ADOPTED_UNLOCKED
inline lock_take() { skip }
#else
inline lock_take() { atomic { !registry -> registry = true } }
#endif
inline lock_free() { registry = false }

inline take_orphan(cache, counted) {
    lock_take();
    counted = orphans;
    if
    :: listed[0] && orphan[0] -> cache = 0
    :: !(listed[0] && orphan[0]) && listed[1] && orphan[1] -> cache = 1
    :: else -> cache = NONE
    fi;
    if
    :: cache != NONE -> listed[cache] = false; adopting++
#ifdef NEVER_ZEROED
    :: false ->
#else
#ifdef HAND_UNCOUNTED
    :: cache == NONE && counted != 0 ->
#else
    :: cache == NONE && counted != 0 && adopting == 0 ->
#endif
#endif
#ifdef ZEROED_UNCOMPARED
        orphans = 0
#else
        atomic { orphans = (orphans == counted -> 0 : orphans) }
#endif
    :: else
    fi;
    lock_free()
}

proctype ending(byte c) { /* end_thread, refused */
#ifdef COUNTED_FIRST
    atomic { orphans++ };
    orphan[c] = true;
#else
    orphan[c] = true;
    atomic { orphans++ };
#endif
    gone++
}

#ifdef CYCLES
#define may_come (orphans != 0) /* as often as it likes */
#else
#define may_come (turn < 3 && orphans != 0)
#endif

proctype adopter() {
    byte cache, counted, turn;
    do
    :: may_come ->
#ifndef CYCLES
        turn++;
#endif
#ifdef CYCLES /* one step: who looks in vain, for ever, would keep the others from the registry's lock */
        atomic { take_orphan(cache, counted) };
#else
        take_orphan(cache, counted);
#endif
        if
        :: cache != NONE ->
            atomic { flushing[cache]++; assert(flushing[cache] == 1) };
            slots[cache]--;
            flushing[cache]--;
            lock_take();
            adopting--;
            if
            :: slots[cache] > 0 -> listed[cache] = true; lock_free()
            :: else ->
                orphan[cache] = false;
#ifdef COUNTED_DOWN_UNLOCKED
                lock_free();
#endif
                atomic { orphans = (orphans > 0 -> orphans - 1 : 0) };
#ifndef COUNTED_DOWN_UNLOCKED
                lock_free()
#endif
            fi
        :: else
        fi
    :: else -> break
    od;
    gone++
}

init {
    atomic { slots[0] = SLOTS; slots[1] = SLOTS; run ending(0); run ending(1); run adopter(); run adopter() };
    gone == 4;
    assert(orphans > 0 || (slots[0] == 0 && slots[1] == 0))
}
