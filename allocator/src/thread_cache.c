#include "thread_cache.h"

#include <pthread.h>
#include <stdatomic.h>

#include "large.h"
#include "lock.h"

enum {
    CAPACITY_FIRST = 16,
    CAPACITY_BYTES = 32 * 1024,
    CAPACITY_LEAST = 2,
    /* The key's destructor asks to be called again until the third of the four passes over all keys, so that other
     * destructors still find a cache. */
    LAST_PASS = 3,
};

/* Full to a push, empty to a pop: its one word in reach is the NULL at the very end. Never written. */
static union magazine void_magazine __attribute__((aligned(MAGAZINE_BYTES)));
#define VOID_TOP (&void_magazine.word[MAGAZINE_WORDS - 1])

static struct thread_cache thread_cache_none = {
    .classes = {[0 ... CLASS_COUNT - 1] = {.top = VOID_TOP}},
};

/* Less than no slab's tag: tag - TAG_OF_NOBODY is at least CLASS_COUNT for every tag there is. */
static const uint32_t TAG_OF_NOBODY = UINT32_C(0x80000000);
_Static_assert(((uint64_t)TAG_HEAPS_MOST << TAG_HEAP_SHIFT) + CLASS_COUNT < UINT32_C(0x80000000), "see above");

_Thread_local struct thread_view thread_view = {
    .by_step = {[0 ... STEP_COUNT - 1] = &thread_cache_none.classes[0]},
    .cache = &thread_cache_none,
    .tag = UINT32_C(0x80000000),
};

/* Protects the list of caches, the unused ones, and the opening of the arena. Taken before every other lock. */
static struct {
    struct lock lock;
    struct thread_cache *alive;
    struct thread_cache *unused;
    pthread_key_t key;
    bool has_key;
    _Atomic bool started; /* release when set, acquire when read: the arena is open to whoever sees it */
} registry;

static void end_thread(void *pass);
static void watch_forks(void);

bool thread_cache_start(void) {
    if (likely(atomic_load_explicit(&registry.started, memory_order_acquire))) {
        return true;
    }
    lock_take(&registry.lock);
    bool started = atomic_load_explicit(&registry.started, memory_order_relaxed);
    if (!started) {
        started = heap_start();
        /* Without a key (a program may have used them all up) caches outlive their threads: a leak, no more. */
        registry.has_key = started && pthread_key_create(&registry.key, end_thread) == 0;
        atomic_store_explicit(&registry.started, started, memory_order_release);
    }
    lock_free(&registry.lock);
    return started;
}

/* -- birth and end ------------------------------------------------------------------------------------------- */

static void link_cache(struct thread_cache *cache) {
    cache->prev = NULL;
    cache->next = registry.alive;
    if (cache->next != NULL) {
        cache->next->prev = cache;
    }
    registry.alive = cache;
}

static void unlink_cache(struct thread_cache *cache) {
    if (cache->next != NULL) {
        cache->next->prev = cache->prev;
    }
    if (cache->prev != NULL) {
        cache->prev->next = cache->next;
    } else {
        registry.alive = cache->next;
    }
    cache->next = registry.unused;
    registry.unused = cache;
}

static struct thread_cache *new_cache(void) {
    lock_take(&registry.lock);
    struct thread_cache *cache = registry.unused;
    if (cache != NULL) {
        registry.unused = cache->next;
    } else {
        cache = heap_bookkeeping(sizeof *cache);
    }
    if (cache != NULL) {
        *cache = thread_cache_none;
        link_cache(cache);
    }
    lock_free(&registry.lock);
    return cache;
}

/* Gives the calling thread a cache. False when memory is out. */
static bool be_born(void) {
    if (!thread_cache_start()) {
        return false;
    }
    struct thread_cache *cache = new_cache();
    if (cache == NULL) {
        return false;
    }
    cache->heap = heap_choose();
    struct thread_view *view = &thread_view;
    for (unsigned step = 0; step < STEP_COUNT; step++) {
        view->by_step[step] = &cache->classes[class_of((size_t)(step + 1) << CLASS_STEP_BITS)];
    }
    view->cache = cache;
    view->tag = heap_tag(cache->heap);
    view->state = THREAD_ALIVE;
    /* Last, since these may allocate. */
    if (registry.has_key) {
        (void)pthread_setspecific(registry.key, (void *)1);
    }
    watch_forks();
    return true;
}

/* True when the thread has a cache, now if not before. */
static bool has_cache(void) {
    if (likely(thread_view.state == THREAD_ALIVE)) {
        return true;
    }
    return thread_view.state == THREAD_UNBORN && be_born();
}

/* The cache is marked busy around every exchange; the fences keep the compiler from moving the exchange out. */
static void enter(struct thread_cache *cache) {
    cache->busy++;
    atomic_signal_fence(memory_order_seq_cst);
}

static void leave(struct thread_cache *cache) {
    atomic_signal_fence(memory_order_seq_cst);
    cache->busy--;
}

static void deliver(struct thread_cache *cache) {
    unsigned count = cache->remote_count;
    cache->remote_count = 0;
    cache->remote_bytes = 0;
    heap_give(cache->remote, count);
}

static void flush_cache(struct thread_cache *cache) {
    enter(cache);
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        struct cache_class *magazines = &cache->classes[class];
        if (magazines->top != VOID_TOP) {
            heap_flush(cache->heap, class, magazines->top);
            magazines->top = VOID_TOP;
        }
        if (magazines->previous != NULL) {
            heap_flush(cache->heap, class, magazines->previous);
            magazines->previous = NULL;
        }
    }
    deliver(cache);
    leave(cache);
}

void thread_cache_flush(void) {
    if (thread_view.state == THREAD_ALIVE) {
        flush_cache(thread_view.cache);
    }
}

static void retire(struct thread_cache *cache) {
    lock_take(&registry.lock);
    unlink_cache(cache);
    lock_free(&registry.lock);
}

static void end_thread(void *pass) {
    uintptr_t passes = (uintptr_t)pass;
    struct thread_view *view = &thread_view;
    struct thread_cache *cache = view->cache;
    if (view->state != THREAD_ALIVE) {
        return;
    }
    flush_cache(cache); /* in each pass: a thread born in a destructor may not see the last one */
    if (passes < LAST_PASS && pthread_setspecific(registry.key, (void *)(passes + 1)) == 0) {
        return;
    }
    for (unsigned step = 0; step < STEP_COUNT; step++) {
        view->by_step[step] = &thread_cache_none.classes[0];
    }
    view->cache = &thread_cache_none;
    view->tag = TAG_OF_NOBODY;
    view->state = THREAD_ENDED; /* destructors and libc still allocate and free: without a cache */
    struct heap *heap = cache->heap;
    cache->heap = NULL; /* before leaving: a child forked in between must not leave once more */
    heap_leave(heap);
    retire(cache);
}

/* -- the slow paths ------------------------------------------------------------------------------------------ */

static unsigned capacity_most(unsigned class) {
    size_t blocks = CAPACITY_BYTES / class_bytes[class];
    return (unsigned)bits_min(bits_max(blocks, CAPACITY_LEAST), MAGAZINE_MOST);
}

/* A class in use earns larger magazines: twice as large at each visit to the heap, up to the most. */
static unsigned grown_capacity(struct cache_class *magazines, unsigned class) {
    size_t capacity = magazines->capacity == 0 ? CAPACITY_FIRST : 2 * (size_t)magazines->capacity;
    magazines->capacity = (uint32_t)bits_min(capacity, capacity_most(class));
    return magazines->capacity;
}

/* Gives the class its first magazine, an empty one. False when memory is out. */
static bool load_first(struct thread_cache *cache, unsigned class) {
    struct cache_class *magazines = &cache->classes[class];
    void **top = heap_spare(cache->heap, grown_capacity(magazines, class));
    if (top == NULL) {
        return false;
    }
    magazines->top = top;
    return true;
}

static void swap(struct cache_class *magazines) {
    void **loaded = magazines->top;
    magazines->top = magazines->previous;
    magazines->previous = loaded;
}

static void *take_from(struct thread_cache *cache, unsigned class) {
    struct cache_class *magazines = &cache->classes[class];
    if (magazines->top == VOID_TOP && !load_first(cache, class)) {
        return heap_take_one(cache->heap, class);
    }
    if (magazine_is_empty(magazines->top)) {
        if (magazines->previous != NULL && !magazine_is_empty(magazines->previous)) {
            swap(magazines);
        } else {
            unsigned capacity = grown_capacity(magazines, class);
            magazines->top = heap_exchange_empty(cache->heap, class, magazines->top, capacity);
        }
    }
    void *block = *magazines->top;
    if (block != NULL) {
        magazines->top--;
    }
    return block;
}

OUT_OF_LINE void *thread_cache_take(unsigned class) {
    if (unlikely(!has_cache())) {
        return thread_cache_start() ? heap_take_one(heap_numbered(0), class) : NULL;
    }
    struct thread_cache *cache = thread_view.cache;
    enter(cache);
    void *block = take_from(cache, class);
    leave(cache);
    return block;
}

/* Makes room in the loaded magazine. False when that took memory that is out. */
static bool make_room(struct thread_cache *cache, unsigned class) {
    struct cache_class *magazines = &cache->classes[class];
    if (magazines->top == VOID_TOP) {
        return load_first(cache, class);
    }
    if (!magazine_is_full(magazines->top)) {
        return true;
    }
    if (magazines->previous == NULL) {
        magazines->previous = heap_spare(cache->heap, magazines->capacity);
        if (magazines->previous == NULL) {
            magazines->top = heap_exchange_full(cache->heap, class, magazines->top, magazines->capacity);
            return true;
        }
    }
    if (magazine_is_full(magazines->previous)) {
        unsigned capacity = grown_capacity(magazines, class);
        magazines->previous = heap_exchange_full(cache->heap, class, magazines->previous, capacity);
    }
    swap(magazines);
    return true;
}

static void give_own(struct thread_cache *cache, void *block, unsigned class) {
    if (unlikely(!make_room(cache, class))) {
        heap_give(&block, 1);
        return;
    }
    *++cache->classes[class].top = block;
}

static void give_remote(struct thread_cache *cache, void *block, unsigned class) {
    cache->remote[cache->remote_count++] = block;
    cache->remote_bytes += class_bytes[class];
    if (cache->remote_count == REMOTE_BLOCKS || cache->remote_bytes >= REMOTE_BYTES) {
        deliver(cache);
    }
}

__attribute__((noinline)) void thread_cache_give(void *block, uint32_t tag) {
    if (unlikely(!has_cache())) {
        heap_give(&block, 1);
        return;
    }
    struct thread_cache *cache = thread_view.cache;
    enter(cache);
    if (tag - thread_view.tag < CLASS_COUNT) {
        give_own(cache, block, tag - thread_view.tag);
    } else {
        give_remote(cache, block, tag & ((1u << TAG_HEAP_SHIFT) - 1));
    }
    leave(cache);
}

/* -- fork ---------------------------------------------------------------------------------------------------- */

/* Order of the locks, first taken first: registry, then heap_before_fork's, then the table of mappings. A fork holds
 * all of them, so that the child finds everything whole. */
static void before_fork(void) {
    lock_take(&registry.lock);
    heap_before_fork();
    large_before_fork();
    lock_hold_all(true);
}

static void after_fork_in_parent(void) {
    lock_hold_all(false);
    large_after_fork(false);
    heap_after_fork(false);
    lock_free(&registry.lock);
}

/* The child's one thread takes over what the others had cached. A cache whose owner was in the middle of an exchange
 * is left alone: its blocks are lost to the child, never handed out twice. */
static void adopt_caches(void) {
    struct thread_cache *next;
    for (struct thread_cache *cache = registry.alive; cache != NULL; cache = next) {
        next = cache->next;
        if (cache == thread_view.cache) {
            continue;
        }
        bool whole = cache->busy == 0;
        if (cache->heap != NULL) {
            if (whole) {
                flush_cache(cache);
            }
            heap_leave(cache->heap);
            cache->heap = NULL; /* a child of this child must not leave once more */
        }
        if (whole) {
            retire(cache);
        }
    }
}

static void after_fork_in_child(void) {
    lock_hold_all(false);
    large_after_fork(true);
    heap_after_fork(true);
    lock_reset(&registry.lock);
    adopt_caches();
}

/* Registers with pthread_atfork, once, at the first allocation or as a constructor, whichever comes first. Handlers that
 * run before a fork run in the opposite order of registration: the earlier ours registers, the fewer of the others run
 * while it holds the locks. Those that do may still allocate (lock_hold_all). */
__attribute__((constructor(101))) static void watch_forks(void) {
    static _Atomic bool watching; /* relaxed: only who sets it first registers */
    if (!atomic_exchange_explicit(&watching, true, memory_order_relaxed)) {
        (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
}
