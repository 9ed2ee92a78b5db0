/* What the rooms of the threads share: a thread's life (thread_life), what others may do with its cache (borrow), its slow paths
 * (thread_cache), and forks (fork). */
#ifndef FREESTONE_THREAD_INSIDE_H
#define FREESTONE_THREAD_INSIDE_H

#include "gate.h"
#include "lock.h"
#include "options.h"
#include "random.h"
#include "sampling.h"
#include "thread_cache.h"
#include "thread_life.h"

/* Full to a push, empty to a pop: its one word in reach is MAGAZINE_NONE at the very end. Never written. */
extern union magazine thread_void INTERNAL;
#define VOID_TOP (&thread_void.word[MAGAZINE_WORDS - 1])

enum { BIRTH_PLACES = 256 };

/* Protects the list of caches, and the unused ones. Taken before every other lock, by who is inside. */
struct registry {
    /* Bytes that the magazines of all live threads may hold, as far as the threads have told it: within an eighth. Relaxed: any
     * recent value will do. Threads change it when their magazines grow or are given up: on another line than `orphans` and `count`, which every slow
     * path reads. */
    _Alignas(64) _Atomic size_t room;
    struct lock lock;
    struct thread_cache *alive, *last; /* the list, doubly linked, and its last */
    /* Orphans that nobody else can reach: whose threads are gone, and that nobody borrows. Linked by `next`. In the child of a fork that is
     * the whole list of the parent but for one, so what else these caches say of their threads (owner, busy, borrowed, orphan) is void. */
    struct thread_cache *left;
    struct thread_cache *unused;
    struct thread_cache *cursor; /* the next to be looked at; see borrow.c */
    struct thread_cache *to_summon; /* the next to be summoned; NULL: from the start */
    struct thread_cache
        *born[BIRTH_PLACES]; /* caches, unused ones too, by where their thread's view was: see thread_life.c */
    uint32_t left_count; /* in `left`; counted in `orphans` */
    uint32_t adopting; /* orphans that somebody has in his hands, and may put back; counted in `orphans` */
    _Atomic uint32_t postponed; /* slow paths that adopt nothing yet; relaxed: one more or less */
    _Atomic uint32_t orphans; /* relaxed: sooner or later somebody sees it */
    _Atomic uint32_t count; /* of those alive; changed under the lock, read without: any recent value will do */
    _Atomic uint32_t
        looked_through; /* `count` when the keeper last looked; relaxed: it is wished for a birth sooner or later */
};
_Static_assert(offsetof(struct registry, orphans) / 64 > offsetof(struct registry, born) / 64,
               "not on the line of `room`");
extern struct registry registry INTERNAL;

/* Frees the blocks of a slot, or of all slots. By the cache's thread, inside. */
void cache_flush_slot(struct thread_cache *cache, unsigned slot);
void cache_flush(struct thread_cache *cache);

/* Frees the blocks of the slot's other magazine; also by who has borrowed the cache. True when arena_age is to be called once no lock is held, nor a
 * cache borrowed. */
bool cache_flush_previous(struct thread_cache *cache, unsigned slot);

/* The heap with which the thread exchanges blocks of the class. */
static inline struct heap *heap_of(const struct thread_cache *cache, unsigned class) {
    return heap_for(cache->heap, class);
}

/* A thread unloads a magazine before it changes it, so a signal handler or a forked child finds a
 * void slot (nothing to pop, no room to push) and takes the slow path, which the gate refuses. A
 * magazine that is being changed is no stack: its blocks may lie over the word that marked it
 * empty. */
static inline void **slot_unload(struct cache_class *magazines) {
    void **top = magazines->top;
    magazines->top = VOID_TOP;
    atomic_signal_fence(memory_order_seq_cst);
    if (unlikely((modes() & MODE_GUARDED) != 0)) {
        sampling_lift(top);
    }
    return top;
}

static inline void slot_load(struct cache_class *magazines, void **top) {
    if (unlikely((modes() & MODE_GUARDED) != 0) && top != VOID_TOP && likely(thread_view.state == THREAD_ALIVE)) {
        uint64_t drawn = random_next(&thread_view.cache->chance);
        if (unlikely(drawn < sampling_within[magazine_count(top)])) {
            sampling_sow(magazines, top, drawn);
        }
    }
    atomic_signal_fence(memory_order_seq_cst);
    magazines->top = top;
}

/* -- inside -------------------------------------------------------------------------------------------------- */

/* The cache is borrowed or the gate closed: true when it is worth another try. */
bool cache_step_aside(struct thread_cache *cache);

/* The exchange is a full fence: who forks or borrows looks at `busy` after he has said so, and the thread looks after it has set it, all in
 * one order (seq_cst). A thread that is inside already was interrupted by a signal, in whose handler this is: refused. */
static inline bool cache_enter(struct thread_cache *cache) {
    if (unlikely(atomic_load_explicit(&cache->busy, memory_order_relaxed) != 0)) {
        return false;
    }
    do {
        if (likely(gate_is_open())) { /* or nothing is said */
            (void)atomic_exchange_explicit(&cache->busy, 1, memory_order_seq_cst);
            if (likely(atomic_load_explicit(&cache->borrowed, memory_order_seq_cst) == 0) && likely(gate_is_open())) {
                uint32_t visits = atomic_load_explicit(&cache->visits, memory_order_relaxed);
                atomic_store_explicit(&cache->visits, visits + 1, memory_order_relaxed);
                if (unlikely(cache->summons != NULL)) {
                    sampling_answer(cache);
                }
                return true;
            }
            atomic_store_explicit(&cache->busy, 0, memory_order_release);
        }
    } while (cache_step_aside(cache));
    return false;
}

/* release: who borrows the cache next, or forks, finds what was exchanged. */
static inline void cache_leave(struct thread_cache *cache) {
    atomic_store_explicit(&cache->busy, 0, memory_order_release);
    gate_left();
}

enum pass thread_enter_without_cache(void);
void thread_leave_outside(void);

/* thread_enter and thread_leave, for those paths that every magazine goes. */
static inline enum pass thread_go_inside(void) {
    if (likely(thread_view.state == THREAD_ALIVE)) {
        return cache_enter(thread_view.cache) ? PASS_CACHE : PASS_REFUSED;
    }
    return thread_enter_without_cache();
}

static inline void thread_come_out(enum pass pass) {
    if (likely(pass == PASS_CACHE)) {
        cache_leave(thread_view.cache);
    } else if (pass == PASS_OUTSIDER) {
        thread_leave_outside();
    }
}

/* Where the fast paths of this thread take blocks of the class from. */
void thread_point_steps(unsigned class, struct cache_class *magazines);

/* Threads that have worked lately, the cache's included; and, to be called now and then, what lately is. */
unsigned thread_workers(struct thread_cache *cache);
void thread_look_at_clock(void);

/* Takes over what threads have left that ended during a fork, or that are not in this child of one: some of it; false when there is nothing
 * that others are not at. The caller is inside. */
bool thread_adopt_some(void);

/* Whether a slow path is to adopt some: not the first few of a child. What its parent's threads have left is copied when it is touched, and few
 * children live long. */
static inline bool thread_may_adopt(void) {
    uint32_t postponed = atomic_load_explicit(&registry.postponed, memory_order_relaxed);
    if (unlikely(postponed != 0)) {
        atomic_store_explicit(&registry.postponed, postponed - 1, memory_order_relaxed);
    }
    return postponed == 0;
}

/* In the child of a fork, by who puts it right: all caches but the forker's are left by threads that are gone. Its cost does not depend on how many
 * they are, and their memory stays the parent's until somebody adopts them. `spared` may be a thread's that has none. */
void thread_make_orphans(struct thread_cache *spared);

/* The cache is the caller's to empty, borrowed, and its thread is gone without a word: it becomes an orphan. */
void thread_abandon_borrowed(struct thread_cache *cache);

/* Empties what others than `own` have cached and do not use: caches that were not used since the last look, or, `all`, all whose threads
 * are not inside. Goes on as long as `goes_on` says; the caller is inside, or asks the gate there. */
void borrow_caches(const struct thread_cache *own, bool all, bool (*goes_on)(void));

/* Summons a thread that is not inside, one after the other at each call (sampling.h). By who is inside. */
void borrow_to_summon(void);
void borrow_after_fork(void);

#endif
