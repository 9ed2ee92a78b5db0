/* The thread cache: two magazines per size class, loaded and previous.
 *
 *   malloc:  loaded -> previous (swap) -> heap: a full magazine for the empty one
 *   free:    loaded -> previous (swap) -> heap: an empty magazine for the full one
 *   a block of another heap: a batch of such blocks, delivered to their owners when it is full
 *
 * previous is always entirely full or entirely empty, so that a program that hovers around a magazine's edge swaps
 * instead of going to the heap.
 *
 * A thread that has no cache (not yet, or no longer) sees `thread_cache_none`, whose magazines are full to a push and
 * empty to a pop, and a tag that no slab has: every fast path leaves by the branch it has anyway. */
#ifndef FREESTONE_THREAD_CACHE_H
#define FREESTONE_THREAD_CACHE_H

#include "heap.h"

enum {
    STEP_LARGEST = 1024, /* sizes up to here find their magazine by 16-byte step, without computing the class */
    STEP_COUNT = STEP_LARGEST >> CLASS_STEP_BITS,
    REMOTE_BLOCKS = 64, /* bounds of a batch of other heaps' blocks */
    REMOTE_BYTES = 128 * 1024,
};

/* One class's magazines in a thread; 32 bytes, so that the class's number is turned into its place by a shift. */
struct cache_class {
    void **top;      /* in the loaded magazine; the NULL below its lowest block when empty */
    void **previous; /* top of the other magazine, NULL while there is none */
    uint32_t capacity;
    uint32_t unused[3];
};
_Static_assert(sizeof(struct cache_class) == 32, "indexed by a shift");

struct thread_cache {
    struct cache_class classes[CLASS_COUNT]; /* first: its address is the cache's */
    struct heap *heap;
    struct thread_cache *next, *prev; /* all caches; protected by the registry's lock */
    /* Not 0 while magazines are being exchanged: a fork at that moment leaves them to the child half-moved, and the
     * child then keeps its hands off (thread_cache_after_fork). Read by no other thread of the same process. */
    volatile uint32_t busy;
    uint32_t remote_count;
    size_t remote_bytes;
    void *remote[REMOTE_BLOCKS];
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

/* Frees a block of a slab whose tag is `tag`, when the loaded magazine is full or the slab is another heap's. */
void thread_cache_give(void *block, uint32_t tag);

/* Empties the calling thread's cache into its heap and delivers what belongs to others. */
void thread_cache_flush(void);

/* Opens the arena if that has not happened. False when the kernel refuses the address space. */
bool thread_cache_start(void);

#endif
