#include "thread_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "large.h"
#include "lock.h"
#include "os.h"

enum {
    CAPACITY_FIRST = 16,
    CAPACITY_BYTES = 64 * 1024,
    GIVEN_BYTES = 16 * 1024, /* what of a slot is only ever given: one magazine, of so many bytes at most */
    CAPACITY_THREADS = 8, /* with more threads than this, each has a share of what so many would have */
    LOOK_EXCHANGES = 256, /* exchanges of magazines between two looks at what others wait for, and at the other heaps */
    WISH_EXCHANGES = 32, /* ... and between two wishes for the keeper, */
    WISH_BYTES = 4 * 1024 * 1024, /* while the magazines of all threads have room for so much */
    /* The key's destructor asks to be called again until the third of the four passes over all keys, so that other
     * destructors still find a cache. */
    LAST_PASS = 3,
};

/* Full to a push, empty to a pop: its one word in reach is the NULL at the very end. Never written. */
static union magazine void_magazine __attribute__((aligned(MAGAZINE_BYTES)));
#define VOID_TOP (&void_magazine.word[MAGAZINE_WORDS - 1])

static struct thread_cache thread_cache_none = {
    .slots = {[0 ... SLOT_COUNT - 1] = {.top = VOID_TOP}},
};

_Thread_local struct thread_view thread_view = {
    .by_step = {[0 ... STEP_COUNT - 1] = &thread_cache_none.slots[0]},
    .cache = &thread_cache_none,
};

/* Protects the list of caches, the unused ones, and the opening of the arena. Taken before every other lock. */
static struct {
    struct lock lock;
    struct thread_cache *alive;
    struct thread_cache *unused;
    _Atomic unsigned count; /* of those alive; changed under the lock, read without: any recent value will do */
    _Atomic size_t room; /* of those alive: what their magazines may hold; relaxed: any recent value will do */
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
        keeper_open();
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
    atomic_fetch_add_explicit(&registry.count, 1, memory_order_relaxed);
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
    atomic_fetch_sub_explicit(&registry.count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&registry.room, cache->room, memory_order_relaxed);
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
        memmove(cache, &thread_cache_none, sizeof *cache);
        link_cache(cache);
    }
    lock_free(&registry.lock);
    return cache;
}

/* The heap with which the thread exchanges blocks of the class. */
static struct heap *heap_of(const struct thread_cache *cache, unsigned class) { return heap_for(cache->heap, class); }

/* From where the thread takes blocks of the class. */
static unsigned own_slot(const struct thread_cache *cache, unsigned class) {
    return slot_of(heap_number(cache->heap), class);
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
    heap_join(&cache->heap);
    struct thread_view *view = &thread_view;
    view->cache = cache; /* by_step leaves every slot out until blocks are taken: see begin_taking */
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

static void set_busy(struct thread_cache *cache, uint32_t busy) {
    atomic_store_explicit(&cache->busy, busy, memory_order_relaxed);
}

/* Waits until the keeper has let go of the cache. */
static OUT_OF_LINE void wait_for_keeper(struct thread_cache *cache) {
    do {
        set_busy(cache, 0);
        os_wait_for(&cache->borrowed, 1, 10);
        set_busy(cache, 1);
        atomic_thread_fence(memory_order_seq_cst);
    } while (atomic_load_explicit(&cache->borrowed, memory_order_acquire) != 0);
}

/* The cache is marked busy around every exchange. For a fork, the fences keep the compiler from moving the exchange out.
 * The keeper may borrow a cache that is not busy: it says so, makes every thread see that (os_barrier, which is why a
 * fence of the compiler's is enough here), and only then reads `busy`. Either it sees the thread busy and gives up, or the
 * thread sees the cache borrowed and waits. acquire: pairs with the keeper's release when it is done. */
static void enter(struct thread_cache *cache) {
    uint32_t busy = atomic_load_explicit(&cache->busy, memory_order_relaxed);
    set_busy(cache, busy + 1);
    atomic_signal_fence(memory_order_seq_cst);
    if (busy == 0) {
        uint32_t visits = atomic_load_explicit(&cache->visits, memory_order_relaxed);
        atomic_store_explicit(&cache->visits, visits + 1, memory_order_relaxed);
        if (unlikely(atomic_load_explicit(&cache->borrowed, memory_order_acquire) != 0)) {
            wait_for_keeper(cache);
        }
    }
}

/* release: who borrows the cache next sees what was exchanged. */
static void leave(struct thread_cache *cache) {
    atomic_signal_fence(memory_order_seq_cst);
    uint32_t busy = atomic_load_explicit(&cache->busy, memory_order_relaxed);
    atomic_store_explicit(&cache->busy, busy - 1, memory_order_release);
}

static void flush_magazine(struct thread_cache *cache, unsigned slot, void **top) {
    unsigned class = slot_class(slot);
    heap_flush(heap_of(cache, class), class, top);
}

static void flush_previous(struct thread_cache *cache, unsigned slot) {
    struct cache_class *magazines = &cache->slots[slot];
    if (magazines->previous != NULL) {
        flush_magazine(cache, slot, magazines->previous);
        magazines->previous = NULL;
    }
}

/* Where the fast paths of this thread take blocks of the class from. */
static void point_steps(unsigned class, struct cache_class *magazines) {
    if (class_bytes[class] <= STEP_LARGEST) {
        unsigned step = class == 0 ? 0 : class_bytes[class - 1] >> CLASS_STEP_BITS;
        for (; step < class_bytes[class] >> CLASS_STEP_BITS; step++) {
            thread_view.by_step[step] = magazines;
        }
    }
}

/* From now on blocks are popped from the slot: the keeper keeps its hands off what is loaded. */
static inline void begin_taking(struct thread_cache *cache, unsigned slot) {
    if (unlikely(!cache->slots[slot].taken)) {
        cache->slots[slot].taken = true;
        point_steps(slot_class(slot), &cache->slots[slot]);
    }
}

static void end_taking(struct thread_cache *cache, unsigned slot) {
    if (cache->slots[slot].taken) {
        cache->slots[slot].taken = false;
        if (cache == thread_view.cache) { /* not one that a fork has left behind */
            point_steps(slot_class(slot), &cache->slots[0]);
        }
    }
}

/* By the thread itself, or by the only one of a fork's child. */
static void flush_slot(struct thread_cache *cache, unsigned slot) {
    struct cache_class *magazines = &cache->slots[slot];
    end_taking(cache, slot);
    if (magazines->top != VOID_TOP) {
        flush_magazine(cache, slot, magazines->top);
        magazines->top = VOID_TOP;
    }
    flush_previous(cache, slot);
}

static void flush_cache(struct thread_cache *cache) {
    enter(cache);
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        if (cache->slots[slot].top != VOID_TOP) { /* without a loaded magazine there is none at all */
            flush_slot(cache, slot);
        }
    }
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
        view->by_step[step] = &thread_cache_none.slots[0];
    }
    view->cache = &thread_cache_none;
    view->state = THREAD_ENDED; /* destructors and libc still allocate and free: without a cache */
    heap_leave(&cache->heap);
    retire(cache);
}

/* -- the slow paths ------------------------------------------------------------------------------------------ */

/* Blocks in a magazine at most. What all threads together may cache is bounded however many there are: but for one block
 * in each magazine, at 32 MiB. */
static unsigned capacity_most(unsigned class) {
    unsigned threads = atomic_load_explicit(&registry.count, memory_order_relaxed);
    size_t bytes = threads <= CAPACITY_THREADS ? CAPACITY_BYTES : CAPACITY_BYTES * CAPACITY_THREADS / threads;
    return (unsigned)bits_min(bits_max(bytes / class_bytes[class], 1), MAGAZINE_MOST);
}

/* Frees the blocks of classes that the thread has not used since the last season: a few hundred blocks of a class that is
 * no longer in use can keep as many slabs from being used for another. A class that was used and has its magazines just
 * as they were looks idle too; it is filled again. */
static void empty_idle_slots(struct thread_cache *cache) {
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        struct cache_class *magazines = &cache->slots[slot];
        uint32_t top = (uint32_t)(uintptr_t)magazines->top;
        if (magazines->top != VOID_TOP && magazines->last_top == top && magazines->last_visits == magazines->visits) {
            flush_slot(cache, slot);
        }
        magazines->last_top = (uint32_t)(uintptr_t)magazines->top;
        magazines->last_visits = magazines->visits;
    }
}

/* Follows the heap into a new season. */
static inline void follow_season(struct thread_cache *cache) {
    uint32_t season = heap_season(cache->heap);
    if (unlikely(season != cache->season)) {
        cache->season = season;
        empty_idle_slots(cache);
    }
}

/* What others may wait for does not grow old here, and threads spread over the heaps that others have left. */
static OUT_OF_LINE void look_round(struct thread_cache *cache) {
    cache->looked = cache->exchanges;
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        if (!cache->slots[slot].taken) {
            flush_slot(cache, slot);
        }
    }
    if (!heap_move(&cache->heap)) {
        return;
    }
    flush_cache(cache); /* or its blocks would go home one magazine after the other, and lie there in depots */
}

/* Threads that go to sleep after their work leave memory in their magazines that is neither a free span nor free in a slab,
 * and only the keeper can tell that they sleep. */
static OUT_OF_LINE void wish(struct thread_cache *cache) {
    cache->wished = cache->exchanges;
    if (atomic_load_explicit(&registry.room, memory_order_relaxed) >= WISH_BYTES) {
        keeper_wish();
    }
}

static inline void look_round_sometimes(struct thread_cache *cache) {
    if (unlikely(cache->exchanges - cache->wished >= WISH_EXCHANGES)) {
        wish(cache);
    }
    if (unlikely(cache->exchanges - cache->looked >= LOOK_EXCHANGES)) {
        look_round(cache);
    }
}

/* A class in use earns larger magazines: twice as large at each visit to the heap, up to the most. */
static unsigned grown_capacity(struct thread_cache *cache, struct cache_class *magazines, unsigned class) {
    size_t before = magazines->capacity;
    size_t capacity = bits_min(before == 0 ? CAPACITY_FIRST : 2 * before, capacity_most(class));
    if (capacity != before) {
        magazines->capacity = (uint8_t)capacity;
        /* Of two magazines. Where there is less than before, the sums are right all the same, modulo 2^64. */
        size_t room = 2 * (capacity - before) * class_bytes[class];
        cache->room += room;
        atomic_fetch_add_explicit(&registry.room, room, memory_order_relaxed);
    }
    return (unsigned)capacity;
}

/* ... of blocks that the thread only gives, fewer: others may wait for them. */
static unsigned capacity_here(struct thread_cache *cache, struct cache_class *magazines, unsigned class) {
    unsigned capacity = grown_capacity(cache, magazines, class);
    return magazines->taken ? capacity : (unsigned)bits_min(capacity, bits_max(GIVEN_BYTES / class_bytes[class], 1));
}

/* Gives the slot its first magazine, an empty one. False when memory is out. */
static bool load_first(struct thread_cache *cache, unsigned slot) {
    struct cache_class *magazines = &cache->slots[slot];
    unsigned class = slot_class(slot);
    void **top = heap_spare(heap_of(cache, class), capacity_here(cache, magazines, class));
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

/* Loads what a heap gave for an empty magazine; false when it gave none. */
static bool load(struct thread_cache *cache, struct cache_class *magazines, void **top) {
    if (top == NULL) {
        return false;
    }
    cache->exchanges++;
    magazines->surplus = false;
    magazines->top = top;
    return true;
}

/* Blocks for an empty slot. False when there is no memory for a first magazine. */
static bool refill(struct thread_cache *cache, struct cache_class *magazines, unsigned class) {
    void **empty = magazines->top == VOID_TOP ? NULL : magazines->top;
    return load(cache, magazines,
                heap_exchange_empty(heap_of(cache, class), class, empty, grown_capacity(cache, magazines, class)));
}

static void *take_from(struct thread_cache *cache, unsigned class) {
    unsigned slot = own_slot(cache, class);
    struct cache_class *magazines = &cache->slots[slot];
    magazines->visits++;
    follow_season(cache);
    begin_taking(cache, slot);
    if (magazine_is_empty(magazines->top)) {
        if (magazines->previous != NULL && !magazine_is_empty(magazines->previous)) {
            swap(magazines);
        } else if (!refill(cache, magazines, class)) {
            bool zero;
            return heap_take_one(heap_of(cache, class), class, &zero);
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
        bool zero;
        return thread_cache_start() ? heap_take_one(heap_numbered(0), class, &zero) : NULL;
    }
    struct thread_cache *cache = thread_view.cache;
    enter(cache);
    look_round_sometimes(cache);
    void *block = take_from(cache, class);
    leave(cache);
    thread_cache_serve_wishes();
    return block;
}

/* Whether the thread has blocks of the class that were in use before, or gets some from its heap. To clear one costs less than
 * the page fault of a fresh one. */
static bool has_used(struct thread_cache *cache, unsigned class) {
    struct cache_class *magazines = &cache->slots[own_slot(cache, class)];
    if (!magazine_is_empty(magazines->top) ||
        (magazines->previous != NULL && !magazine_is_empty(magazines->previous))) {
        return true;
    }
    if (magazines->top == VOID_TOP) {
        return false;
    }
    unsigned capacity = grown_capacity(cache, magazines, class);
    (void)load(cache, magazines, heap_exchange_used(heap_of(cache, class), class, magazines->top, capacity));
    return !magazine_is_empty(magazines->top);
}

void *thread_cache_take_zero(unsigned class, bool *zero) {
    *zero = false;
    if (!has_cache()) {
        return thread_cache_take(class);
    }
    struct thread_cache *cache = thread_view.cache;
    enter(cache);
    void *block = has_used(cache, class) ? take_from(cache, class) : heap_take_one(heap_of(cache, class), class, zero);
    leave(cache);
    return block;
}

/* A magazine of which the keeper has taken all up to the very end has no room any more: it gets all of it again. Left as it is, a
 * depot might pass it on for a full one. */
static inline void reopen(struct cache_class *magazines) {
    union magazine *magazine = magazine_of(magazines->top);
    if (unlikely(magazine_capacity(magazine) == 0) && magazines->top != VOID_TOP) {
        magazines->top = magazine_clear(magazine, magazines->capacity);
    }
}

/* Makes room in the loaded magazine. False when that took memory that is out. */
static bool make_room(struct thread_cache *cache, unsigned slot) {
    struct cache_class *magazines = &cache->slots[slot];
    unsigned class = slot_class(slot);
    magazines->visits++;
    if (magazines->top == VOID_TOP) {
        return load_first(cache, slot);
    }
    reopen(magazines);
    if (!magazine_is_full(magazines->top)) {
        return true;
    }
    if (!magazines->taken) {
        cache->exchanges++;
        unsigned capacity = capacity_here(cache, magazines, class);
        magazines->top = heap_exchange_full(heap_of(cache, class), class, magazines->top, capacity, ONLY_GIVES);
        return true;
    }
    if (magazines->previous == NULL) {
        magazines->previous = heap_spare(heap_of(cache, class), magazines->capacity);
        if (magazines->previous == NULL) {
            magazines->top =
                heap_exchange_full(heap_of(cache, class), class, magazines->top, magazines->capacity, GIVES_MORE);
            return true;
        }
    }
    if (magazine_is_full(magazines->previous)) {
        cache->exchanges++;
        unsigned capacity = grown_capacity(cache, magazines, class);
        enum trade trade = magazines->surplus ? GIVES_MORE : GIVES_AND_TAKES;
        magazines->previous = heap_exchange_full(heap_of(cache, class), class, magazines->previous, capacity, trade);
        magazines->surplus = true;
    }
    swap(magazines);
    return true;
}

static void give(struct thread_cache *cache, void *block, unsigned slot) {
    bool large = !cache->slots[slot].taken && slot_bytes[slot] > GIVEN_BYTES / 2;
    if (unlikely(large || !make_room(cache, slot))) {
        heap_give(&block, 1);
        return;
    }
    *++cache->slots[slot].top = block;
}

__attribute__((noinline)) void thread_cache_give(void *block, unsigned slot) {
    if (unlikely(!has_cache())) {
        heap_give(&block, 1);
        return;
    }
    struct thread_cache *cache = thread_view.cache;
    enter(cache);
    look_round_sometimes(cache);
    give(cache, block, slot);
    leave(cache);
    thread_cache_serve_wishes();
}

/* -- keeping ------------------------------------------------------------------------------------------------- */

/* Says that the cache is borrowed, if its thread has made no exchange since the keeper's last look. */
static bool borrow(struct thread_cache *cache) {
    uint32_t visits = atomic_load_explicit(&cache->visits, memory_order_relaxed);
    bool quiet = visits == cache->seen;
    cache->seen = visits;
    if (quiet) {
        atomic_store_explicit(&cache->borrowed, 1, memory_order_seq_cst);
    }
    return quiet;
}

static bool is_borrowed(const struct thread_cache *cache) {
    return atomic_load_explicit(&cache->borrowed, memory_order_relaxed) != 0;
}

static void give_back(struct thread_cache *cache) {
    if (is_borrowed(cache)) {
        atomic_store_explicit(&cache->borrowed, 0, memory_order_release);
        os_wake(&cache->borrowed);
    }
}

/* Of a slot that its thread may be pushing to meanwhile. */
static void **loaded_top(struct cache_class *magazines) { return __atomic_load_n(&magazines->top, LOOK_ORDER); }

/* Notes how far the loaded magazines of slots that are only pushed to are filled. True when there is something in one. */
static bool note_given(struct thread_cache *cache) {
    bool any = false;
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        struct cache_class *magazines = &cache->slots[slot];
        magazines->noted = 0;
        void **top = magazines->taken ? VOID_TOP : loaded_top(magazines);
        if (top != VOID_TOP && top != &magazine_of(top)->word[magazine_of(top)->bottom]) {
            magazines->noted = (uint8_t)(top - magazine_of(top)->word);
            any = true;
        }
    }
    return any;
}

/* Sends home what was in a loaded magazine when it was noted, by raising its bottom: its thread may be pushing at the other
 * end, and does not look below the top until it has entered. */
static void deliver(struct cache_class *magazines) {
    union magazine *magazine = magazine_of(loaded_top(magazines));
    void *blocks[MAGAZINE_MOST];
    unsigned count = 0;
    for (unsigned word = magazine->bottom + 1; word <= magazines->noted; word++) {
        blocks[count++] = __atomic_load_n(&magazine->word[word], __ATOMIC_RELAXED);
    }
    magazine->bottom = magazines->noted;
    __atomic_store_n(&magazine->word[magazine->bottom], NULL, __ATOMIC_RELAXED);
    heap_give(blocks, count);
}

/* What a thread that has gone quiet keeps from others: the magazines that it does not have loaded, and what it only gives. Loaded
 * ones that it takes from its fast paths may touch at any time. */
static void relieve(struct thread_cache *cache) {
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        struct cache_class *magazines = &cache->slots[slot];
        flush_previous(cache, slot);
        if (magazines->noted != 0) {
            deliver(magazines);
        }
    }
}

/* A barrier serves all caches. The first is explained at enter: behind it, a thread that is not busy will wait before it
 * exchanges anything. A push goes on meanwhile; behind the second, what lies below a top that was noted before it is seen too,
 * since the thread wrote it earlier. */
static void relieve_quiet_caches(void) {
    bool any = false, given = false;
    lock_take(&registry.lock); /* no cache comes or goes meanwhile */
    for (struct thread_cache *cache = registry.alive; cache != NULL; cache = cache->next) {
        any |= borrow(cache);
    }
    bool ordered = any && os_barrier();
    for (struct thread_cache *cache = registry.alive; any && cache != NULL; cache = cache->next) {
        /* acquire: pairs with the release in leave */
        if (is_borrowed(cache) && (!ordered || atomic_load_explicit(&cache->busy, memory_order_acquire) != 0)) {
            give_back(cache);
        } else if (is_borrowed(cache)) {
            given |= note_given(cache);
        }
    }
    ordered = !given || os_barrier();
    for (struct thread_cache *cache = registry.alive; any && cache != NULL; cache = cache->next) {
        if (is_borrowed(cache) && ordered) {
            relieve(cache);
        }
        give_back(cache);
    }
    lock_free(&registry.lock);
}

size_t thread_cache_keep(bool *more) {
    relieve_quiet_caches();
    bool slabs, spans;
    size_t bytes = heap_keep(&slabs);
    bytes += arena_keep(&spans);
    *more = slabs || spans;
    return bytes;
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
        bool whole = atomic_load_explicit(&cache->busy, memory_order_relaxed) == 0;
        if (cache->heap != NULL) {
            if (whole) {
                flush_cache(cache);
            }
            heap_leave(&cache->heap);
        }
        if (whole) {
            retire(cache);
        }
    }
}

static void after_fork_in_child(void) {
    lock_hold_all(false);
    keeper_after_fork();
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
