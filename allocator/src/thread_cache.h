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

#include "hardened.h"
#include "heap.h"

enum {
    STEP_LARGEST = 1024, /* sizes up to here find their magazine by 16-byte step, without computing the class */
    STEP_COUNT = STEP_LARGEST >> CLASS_STEP_BITS,
};

/* Whether blocks of the class are asked for. Where not, the slot is only pushed to, and by_step leaves it out; aside: so do the fast paths,
 * since each allocation is one to be drawn (sampling.h). */
enum taking { TAKING_NOT, TAKING, TAKING_ASIDE };

/* One slot's magazines in a thread; 32 bytes, so that the slot's number is turned into its place by a shift. */
struct cache_class {
    void **top; /* in the loaded magazine; MAGAZINE_NONE below its lowest block when empty */
    void **previous; /* top of the other magazine, NULL while there is none */
    uint8_t capacity;
    uint8_t noted; /* the keeper's: number of the word that `top` was at when it looked, 0 for none */
    uint8_t taken; /* enum taking */
    bool surplus; /* the last exchange with a heap was a full magazine */
    uint16_t last_top, last_visits; /* lowest bits of `top` and `visits` when the season changed */
    uint32_t visits; /* of the slow paths */
    uint32_t bytes; /* in a block; 0 where there is no cache */
};
_Static_assert(sizeof(struct cache_class) == 32, "indexed by a shift");

struct thread_cache {
    struct cache_class slots[SLOT_COUNT]; /* first: its address is the cache's; slot 0 is always full to a push */
    struct heap *heap;
    const void *owner; /* its thread's thread_view; NULL once it was given up */
    struct thread_cache *next, *prev; /* all caches; protected by the registry's lock */
    _Atomic uint32_t busy; /* 1 while its thread is inside: see gate.h */
    _Atomic uint32_t
        borrowed; /* while somebody else empties what the thread only touches inside: see borrow.c; 2 once it waits */
    _Atomic uint32_t visits; /* times the thread was inside; relaxed, the keeper compares */
    uint32_t seen; /* visits when the keeper last looked */
    _Atomic uint32_t orphan; /* its thread is gone; release, so that who adopts it finds it as the thread left it */
    uint32_t exchanges, looked, wished; /* of magazines: with heaps, when the thread last looked round, and wished */
    uint32_t season; /* heap_season when idle classes were last emptied */
    uint32_t epoch; /* in which the thread was last counted among those that work */
    /* The kernel's ids of its thread and of the process that the thread was born in, by which its end is seen though it has said no
     * word; 0: not known. Relaxed: written once after birth, and an unknown id is only not asked for. */
    _Atomic uint32_t process, thread;
    uint8_t sweep; /* enum sweep: why its slots are gone through, some at each visit, */
    uint8_t swept; /* and up to which that has come */
    size_t room; /* what its magazines may hold, */
    size_t told; /* and what of that the registry knows: within an eighth */
    uint64_t chance; /* state of random_next; 0 before the first use. Sampling's */
    struct hard_cache *hard; /* in a hardened process, instead of magazines; else NULL. It stays with the cache, */
    struct summons *summons; /* as does this, where allocations are sampled; else NULL */
};

/* Sheltered: not born yet, since a fork was under way, but its end will be seen. */
enum thread_state { THREAD_UNBORN, THREAD_SHELTERED, THREAD_ALIVE, THREAD_ENDED };

/* The data that the fast paths of a thread need: 528 bytes of its TLS block, which has 556. That
 * fits the static TLS surplus for a library that is loaded late (dlopen). */
struct thread_view {
    struct cache_class *by_step[STEP_COUNT]; /* from where blocks are taken: slot 0 until the first of the class is */
    struct thread_cache *cache;
    uint32_t state;
    uint32_t outside; /* 1 while the thread is inside without a cache: a signal handler has to know */
};
extern _Thread_local struct thread_view thread_view INTERNAL __attribute__((tls_model("initial-exec")));

/* Whether the calling thread, interrupted by a signal whose handler asks, is inside: with a lock, perhaps. */
bool thread_is_inside(void);

/* From where the thread may pop blocks of the class: its slot, or slot 0, whose magazine is always empty to a pop, while the
 * slot is only pushed to. */
static inline struct cache_class *thread_magazines(unsigned class) {
    uint32_t bytes = class_bytes[class];
    if (bytes <= STEP_LARGEST) {
        return thread_view.by_step[(bytes >> CLASS_STEP_BITS) - 1];
    }
    struct cache_class *magazines = &thread_view.cache->slots[slot_of(0, class)];
    return likely(magazines->taken == TAKING) ? magazines : &thread_view.cache->slots[0];
}

/* A block of the class when the loaded magazine is empty, or, of the class's size and so aligned, from elsewhere. NULL when memory is
 * out. */
void *thread_cache_take(unsigned class, size_t alignment);

/* The same for whoever wants zeros, of blocks large enough that clearing them costs more than a lock: *zeros tells
 * what of the block is known to read as zero. */
void *thread_cache_take_zero(unsigned class, struct zeros *zeros);

/* Frees a block of the slot when the loaded magazine is full. */
void thread_cache_give(void *block, unsigned slot);

/* Memory is out: guarded blocks that were freed go back, and free blocks in depots and in the caches of all threads that
 * are not inside go into the bitmaps, empty slabs to the arena, and free spans to the kernel. The caller is inside. */
void thread_cache_reclaim(void);

/* For who is inside with a cache and uses no magazine: what threads have left, or could not free during a fork. */
void thread_cache_look(void);

/* Frees some of what could not be freed while a fork was under way; false while another thread does. The caller is inside. */
bool thread_free_parked(void);

/* The library's destructor: stops a program that has freed a block twice and would end unnoticed. */
void thread_last_look(void);

/* Empties the calling thread's cache into its heap and delivers what belongs to others. */
void thread_cache_flush(void);

#endif
