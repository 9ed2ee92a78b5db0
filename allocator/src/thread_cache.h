/* The thread cache: two magazines per size class, loaded and previous.
 *
 *   malloc:  loaded -> previous (swap) -> heap: a full magazine for the empty one
 *   free:    loaded -> previous (swap) -> heap: an empty magazine for the full one
 *
 * The blocks may be any heap's: one that another heap's thread has taken is handed out again where it was freed, while its
 * lines are in that CPU's cache. Only where blocks share lines does each heap have a slot (tag.h). Full magazines of which a
 * thread gives more than it takes go to the heap that the blocks belong to.
 *
 * previous is always entirely full or entirely empty, so that a program that hovers around a magazine's edge swaps
 * instead of going to the heap.
 *
 * A thread that has no cache (not yet, or no longer) sees `thread_cache_none`, whose magazines are full to a push and
 * empty to a pop: every fast path leaves by the branch it has anyway. */
#ifndef FREESTONE_THREAD_CACHE_H
#define FREESTONE_THREAD_CACHE_H

#include "heap.h"
#include "keeper.h"

enum {
    STEP_LARGEST = 1024, /* sizes up to here find their magazine by 16-byte step, without computing the class */
    STEP_COUNT = STEP_LARGEST >> CLASS_STEP_BITS,
};

/* One slot's magazines in a thread; 32 bytes, so that the slot's number is turned into its place by a shift. */
struct cache_class {
    void **top; /* in the loaded magazine; the NULL below its lowest block when empty */
    void **previous; /* top of the other magazine, NULL while there is none */
    uint8_t capacity;
    uint8_t noted; /* the keeper's: number of the word that `top` was at when it looked, 0 for none */
    bool
        taken; /* blocks of the class are asked for; where not, the slot is only pushed to, and by_step leaves it out */
    bool surplus; /* the last exchange with a heap was a full magazine */
    uint32_t last_top; /* low half of `top` when the season changed */
    uint32_t visits, last_visits; /* of the slow paths, and when the season changed */
};
_Static_assert(sizeof(struct cache_class) == 32, "indexed by a shift");

struct thread_cache {
    struct cache_class slots[SLOT_COUNT]; /* first: its address is the cache's; slot 0 is always full to a push */
    struct heap *heap;
    struct thread_cache *next, *prev; /* all caches; protected by the registry's lock */
    /* Not 0 while magazines are being exchanged: a fork at that moment leaves them to the child half-moved, and the
     * child then keeps its hands off (adopt_caches); so does the keeper (borrow). Relaxed: os_barrier orders it. */
    _Atomic uint32_t busy;
    _Atomic uint32_t borrowed; /* the keeper empties what the thread only touches while busy; see enter */
    _Atomic uint32_t visits; /* times the thread was busy; relaxed, the keeper compares */
    uint32_t seen; /* visits when the keeper last looked */
    uint32_t exchanges, looked, wished; /* of magazines: with heaps, when the thread last looked round, and wished */
    uint32_t season; /* heap_season when idle classes were last emptied */
    size_t room; /* what its magazines may hold; part of the registry's */
};

/* In what order the keeper sees what a thread pushes. os_barrier takes care of that, so the fast path need not; the thread
 * sanitizer does not know it and is told in its own words. */
#ifdef __SANITIZE_THREAD__
enum { PUSH_ORDER = __ATOMIC_RELEASE, LOOK_ORDER = __ATOMIC_ACQUIRE };
#else
enum { PUSH_ORDER = __ATOMIC_RELAXED, LOOK_ORDER = __ATOMIC_RELAXED };
#endif

enum thread_state { THREAD_UNBORN, THREAD_ALIVE, THREAD_ENDED };

/* What the fast paths of a thread need, in its TLS block: 528 bytes, which leaves room in the static TLS surplus for
 * a library that is loaded late (dlopen). */
struct thread_view {
    struct cache_class *by_step[STEP_COUNT]; /* from where blocks are taken: slot 0 until the first of the class is */
    struct thread_cache *cache;
    uint32_t state;
};
extern _Thread_local struct thread_view thread_view INTERNAL __attribute__((tls_model("initial-exec")));

/* From where the thread may pop blocks of the class: its slot, or slot 0, whose magazine is always empty to a pop, while the
 * slot is only pushed to. */
static inline struct cache_class *thread_magazines(unsigned class) {
    uint32_t bytes = class_bytes[class];
    if (bytes <= STEP_LARGEST) {
        return thread_view.by_step[(bytes >> CLASS_STEP_BITS) - 1];
    }
    struct cache_class *magazines = &thread_view.cache->slots[slot_of(0, class)];
    return likely(magazines->taken) ? magazines : &thread_view.cache->slots[0];
}

/* A block of the class when the loaded magazine is empty. NULL when memory is out. */
void *thread_cache_take(unsigned class);

/* The same for whoever wants zeros, of blocks large enough that clearing them costs more than a lock: *zero tells
 * whether the block is known to read as zero. */
void *thread_cache_take_zero(unsigned class, bool *zero);

/* Frees a block of the slot when the loaded magazine is full. */
void thread_cache_give(void *block, unsigned slot);

/* The keeper's look round: see keeper.h. */
size_t thread_cache_keep(bool *more);

/* To be called, with no lock held, behind every slow path that may have made memory free. */
static inline void thread_cache_serve_wishes(void) {
    if (keeper_is_wished()) {
        keeper_serve(thread_cache_keep);
    }
}

/* Empties the calling thread's cache into its heap and delivers what belongs to others. */
void thread_cache_flush(void);

/* Opens the arena if that has not happened. False when the kernel refuses the address space. */
bool thread_cache_start(void);

#endif
