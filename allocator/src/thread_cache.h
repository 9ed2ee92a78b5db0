/* The thread cache: two magazines per size class, loaded and previous.
 *
 *   malloc:  loaded -> previous (swap) -> heap: a full magazine for the empty one
 *   free:    loaded -> previous (swap) -> heap: an empty magazine for the full one
 *   a block of another heap: a magazine for such blocks of its class, delivered to that heap when it is full
 *
 * previous is always entirely full or entirely empty, so that a program that hovers around a magazine's edge swaps
 * instead of going to the heap.
 *
 * A thread that has no cache (not yet, or no longer) sees `thread_cache_none`, whose magazines are full to a push and
 * empty to a pop, and a tag that no slab has: every fast path leaves by the branch it has anyway. */
#ifndef FREESTONE_THREAD_CACHE_H
#define FREESTONE_THREAD_CACHE_H

#include "heap.h"
#include "keeper.h"

enum {
    STEP_LARGEST = 1024, /* sizes up to here find their magazine by 16-byte step, without computing the class */
    STEP_COUNT = STEP_LARGEST >> CLASS_STEP_BITS,
    REMOTE_SLOTS = 256, /* magazines for other heaps' blocks: room for every class of four heaps, see give_remote */
    REMOTE_BYTES = 256 * 1024, /* bound of the blocks in all of them */
};

/* One class's magazines in a thread; 32 bytes, so that the class's number is turned into its place by a shift. */
struct cache_class {
    void **top; /* in the loaded magazine; the NULL below its lowest block when empty */
    void **previous; /* top of the other magazine, NULL while there is none */
    uint32_t capacity;
    uint32_t last_top; /* low half of `top` when the season changed */
    uint32_t visits, last_visits; /* of the slow paths, and when the season changed */
};
_Static_assert(sizeof(struct cache_class) == 32, "indexed by a shift");

/* Blocks of one class that belong to another heap, stored downwards from the magazine's end, so that it is a full one of
 * `count` blocks at any time. */
struct remote {
    union magazine *magazine; /* NULL while there is none */
    uint32_t tag; /* of the blocks' slabs */
    uint16_t count, capacity;
};

struct thread_cache {
    struct cache_class classes[CLASS_COUNT]; /* first: its address is the cache's */
    struct heap *heap;
    struct thread_cache *next, *prev; /* all caches; protected by the registry's lock */
    /* Not 0 while magazines are being exchanged: a fork at that moment leaves them to the child half-moved, and the
     * child then keeps its hands off (adopt_caches); so does the keeper (borrow). Relaxed: os_barrier orders it. */
    _Atomic uint32_t busy;
    _Atomic uint32_t borrowed; /* the keeper empties what the thread only touches while busy; see enter */
    _Atomic uint32_t visits; /* times the thread was busy; relaxed, the keeper compares */
    uint32_t seen, relieved; /* visits when the keeper last looked, and when it last emptied it */
    uint32_t exchanges, looked; /* of magazines: with heaps, and when the thread last looked round */
    uint32_t season; /* heap_season when idle classes were last emptied */
    size_t remote_bytes;
    struct remote remote[REMOTE_SLOTS];
};

enum thread_state { THREAD_UNBORN, THREAD_ALIVE, THREAD_ENDED };

/* What the fast paths of a thread need, in its TLS block: 528 bytes, which leaves room in the static TLS surplus for
 * a library that is loaded late (dlopen). */
struct thread_view {
    struct cache_class *by_step[STEP_COUNT];
    struct thread_cache *cache;
    uint32_t tag; /* heap_tag of the thread's heap: a slab's tag less this is its class exactly for own slabs */
    uint32_t state;
};
extern _Thread_local struct thread_view thread_view INTERNAL __attribute__((tls_model("initial-exec")));

/* A block of the class when the loaded magazine is empty. NULL when memory is out. */
void *thread_cache_take(unsigned class);

/* The same for whoever wants zeros, of blocks large enough that clearing them costs more than a lock: *zero tells
 * whether the block is known to read as zero. */
void *thread_cache_take_zero(unsigned class, bool *zero);

/* Frees a block of a slab whose tag is `tag`, when the loaded magazine is full or the slab is another heap's. */
void thread_cache_give(void *block, uint32_t tag);

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
