#include <pthread.h>
#include <string.h>

#include "arena.h"
#include "direct_binding.h"
#include "fork.h"
#include "guarded.h"
#include "hardened.h"
#include "keeping.h"
#include "options.h"
#include "os.h"
#include "patience.h"
#include "shelter.h"
#include "street.h"
#include "thread_inside.h"
#include "turns.h"

enum {
    ADOPT_SLOTS = 4, /* flushed at a time of what a thread has left */
    POSTPONED_VISITS = 16, /* of a child's slow paths do not */
    UNSEEN_CACHES = 64, /* more than the keeper has seen, and it is to look: some may have lost their threads */
    EPOCH_MS = 64,  /* who worked in this one or the last is at work */
};

union magazine thread_void __attribute__((aligned(MAGAZINE_BYTES))) = {.word = {[MAGAZINE_WORDS - 1] = MAGAZINE_NONE}};

static struct thread_cache thread_cache_none = {
    .slots = {[0 ... SLOT_COUNT - 1] = {.top = VOID_TOP}},
};

_Thread_local struct thread_view thread_view = {
    .by_step = {[0 ... STEP_COUNT - 1] = &thread_cache_none.slots[0]},
    .cache = &thread_cache_none,
};

struct registry registry;

static struct {
    pthread_key_t key;
    bool has_key;
    _Atomic bool started; /* release when set, acquire when read: the library is open to whoever sees it */
    /* The thread that opens it, as its view; acquire when taken, release when given up: what the last had begun is there for the next. */
    _Atomic(const void *) opener;
} life;

/* Who works: counted once in each epoch. All relaxed: a magazine's size is no matter of a thread more or less. */
static struct {
    _Atomic uint32_t epoch, now, before;
} workers;

static void end_thread(void *key);

/* Once, by the one that has said that it is the opener. */
static bool open_library(void) {
    options_read_environment();
    gate_open();
    if (!heap_start()) {
        return false;
    }
    if ((modes() & MODE_HARDENED) != 0) {
        hardened_open();
    }
    if ((modes() & MODE_GUARDED) != 0 && guarded_open()) {
        sampling_arm();
    }
    keeper_beat_every(sampling_interval());
    if (sampling_interval() != 0) {
        keeper_wish(); /* a program that only takes what it has freed comes inside no more */
    }
    /* Without a key (a program may have used them all up) caches outlive their threads, until the next are born there. */
    life.has_key = DIRECT(pthread_key_create)(&life.key, end_thread) == 0;
    return true;
}

/* False for a signal handler that has interrupted its own thread there: it would wait for itself. Others wait a while: a function of libc's that opening
 * calls may be the program's own, and want a lock that the caller holds. */
static bool claim_opening(void) {
    enum { NAPS = 100 };
    const void *nobody = NULL;
    for (int nap = 0; !atomic_compare_exchange_strong_explicit(&life.opener, &nobody, &thread_view,
                                                               memory_order_acquire, memory_order_relaxed);
         nap++) {
        if (nobody == &thread_view || nap == NAPS) {
            return false;
        }
        os_nap(1); /* nobody wakes: it happens once, and takes less than that */
        nobody = NULL;
    }
    return true;
}

bool thread_start(void) {
    if (likely(atomic_load_explicit(&life.started, memory_order_acquire))) {
        return true;
    }
    if (!claim_opening()) {
        return false;
    }
    bool started = atomic_load_explicit(&life.started, memory_order_relaxed);
    if (!started) {
        started = open_library();
        atomic_store_explicit(&life.started, started, memory_order_release);
    }
    atomic_store_explicit(&life.opener, NULL, memory_order_release);
    return started;
}

/* -- the registry -------------------------------------------------------------------------------------------- */

static void link_cache(struct thread_cache *cache) {
    cache->prev = NULL;
    cache->next = registry.alive;
    *(cache->next != NULL ? &cache->next->prev : &registry.last) = cache;
    registry.alive = cache;
    atomic_fetch_add_explicit(&registry.count, 1, memory_order_relaxed);
}

static void unlink_cache(struct thread_cache *cache) {
    atomic_fetch_sub_explicit(&registry.count, 1, memory_order_relaxed);
    if (registry.cursor == cache) {
        registry.cursor = cache->next;
    }
    if (registry.to_summon == cache) {
        registry.to_summon = cache->next;
    }
    *(cache->next != NULL ? &cache->next->prev : &registry.last) = cache->prev;
    *(cache->prev != NULL ? &cache->prev->next : &registry.alive) = cache->next;
}

/* What is in no list becomes an orphan that the next may take. */
static void link_left(struct thread_cache *cache) {
    cache->next = registry.left;
    registry.left = cache;
    registry.left_count++;
}

static struct thread_cache *take_left(void) {
    struct thread_cache *cache = registry.left;
    if (cache != NULL) {
        registry.left = cache->next;
        registry.left_count--;
        cache->owner = NULL;
    }
    return cache;
}

/* Its thread is gone, without a word. With the registry's lock. */
static void abandon(struct thread_cache *cache) {
    cache->owner = NULL;
    /* acquire: what the last borrower did is done. Under the lock nobody begins to borrow. */
    if (atomic_load_explicit(&cache->borrowed, memory_order_acquire) == 0) {
        unlink_cache(cache);
        link_left(cache);
    } else {
        atomic_store_explicit(&cache->orphan, 1, memory_order_seq_cst);
    }
    atomic_fetch_add_explicit(&registry.orphans, 1, memory_order_seq_cst);
}

static struct thread_cache **birth_place(const void *view) {
    uint64_t hash = (uint64_t)(uintptr_t)view * UINT64_C(0x9E3779B97F4A7C15);
    return &registry.born[hash >> 32 & (BIRTH_PLACES - 1)];
}

void thread_abandon_borrowed(struct thread_cache *cache) {
    lock_take(&registry.lock);
    if (cache->owner != NULL) { /* else somebody else has found it, or the thread has said so after all */
        abandon(cache);
    }
    lock_free(&registry.lock);
}

/* A thread may have gone without a word: born in the last pass over the keys, or where there was no key, or ended by a system call of its own.
 * Where its view was there is the next thread's sooner or later, since stacks are used again; then its cache is an orphan. By a thread that is
 * born, with the registry's lock. */
static void note_birth(struct thread_cache *cache) {
    const void *view = &thread_view;
    struct thread_cache **place = birth_place(view);
    struct thread_cache *before = *place;
    cache->owner = view;
    *place = cache;
    if (before != NULL && before != cache && before->owner == view &&
        atomic_load_explicit(&before->busy, memory_order_relaxed) == 0) { /* else it ended in the middle of something */
        abandon(before);
    }
}

/* Word by word: the program may never call libc's memmove, whose first use brings its surroundings of 64 KiB into the process. */
static void make_empty(struct thread_cache *cache) {
    _Static_assert(sizeof *cache % sizeof(uint64_t) == 0, "of whole words");
    unsigned char *to = (unsigned char *)cache;
    const unsigned char *from = (const unsigned char *)&thread_cache_none;
    for (size_t at = 0; at < sizeof *cache; at += sizeof(uint64_t)) {
        memcpy(to + at, from + at, sizeof(uint64_t));
        __asm__ volatile("" : : : "memory"); /* or the compiler makes a call of it again */
    }
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        cache->slots[slot].bytes = slot_bytes[slot];
    }
}

static struct thread_cache *new_cache(void) {
    if (street_bookkeeping_is_low()) {
        (void)street_bookkeeping_grow();
    }
    lock_take(&registry.lock);
    struct thread_cache *cache = registry.unused;
    if (cache != NULL) {
        registry.unused = cache->next;
    } else {
        cache = street_bookkeeping(sizeof *cache);
    }
    if (cache != NULL) {
        struct hard_cache *hard = cache->hard;
        struct summons *summons = cache->summons;
        make_empty(cache);
        cache->hard = hard;
        cache->summons = summons;
        link_cache(cache);
        note_birth(cache);
    }
    lock_free(&registry.lock);
    return cache;
}

/* Its thread works no more. */
static void count_off(const struct thread_cache *cache) {
    uint32_t epoch = atomic_load_explicit(&workers.epoch, memory_order_relaxed) + 1;
    if (cache->epoch == epoch) {
        atomic_fetch_sub_explicit(&workers.now, 1, memory_order_relaxed);
    } else if (cache->epoch + 1 == epoch && atomic_load_explicit(&workers.before, memory_order_relaxed) > 0) {
        atomic_fetch_sub_explicit(&workers.before, 1, memory_order_relaxed);
    }
}

/* An emptied cache is for the next thread. Its thread is not inside with it any more. */
static void keep_unused(struct thread_cache *cache) {
    count_off(cache);
    atomic_fetch_sub_explicit(&registry.room, cache->told, memory_order_relaxed);
    lock_take(&registry.lock);
    cache->next = registry.unused;
    registry.unused = cache;
    lock_free(&registry.lock);
}

/* -- inside -------------------------------------------------------------------------------------------------- */

/* True when it is open, or worth another try. A handler of the thread's own fork may not wait for it. */
static bool await_gate(void) { return gate_found_closed() || (!fork_is_own() && turns_await_opening()); }

OUT_OF_LINE bool cache_step_aside(struct thread_cache *cache) {
    if (!gate_is_open()) {
        return await_gate();
    }
    uint32_t borrowed = 1;
    /* relaxed: the borrower only hurries by that */
    (void)atomic_compare_exchange_strong_explicit(&cache->borrowed, &borrowed, 2, memory_order_relaxed,
                                                  memory_order_relaxed);
    os_wait_for(&cache->borrowed, 2, 10);
    return true;
}

static bool enter_outside(void) {
    if (thread_view.outside != 0 || (!gate_is_open() && !await_gate())) {
        return false;
    }
    thread_view.outside = 1;
    atomic_signal_fence(memory_order_seq_cst); /* a signal handler finds it set before anything is done */
    if (gate_enter()) {
        return true;
    }
    thread_view.outside = 0;
    return false;
}

void thread_leave_outside(void) {
    gate_leave();
    atomic_signal_fence(memory_order_seq_cst);
    thread_view.outside = 0;
}

/* Notes by which ids the kernel knows the thread, if it may be asked. Never those of a process's first thread, which may be a child of vfork
 * that has its parent's thread-local storage: the cache is the parent's afterwards. A program of one thread is not asked for. */
static void note_ids(struct thread_cache *cache) {
    if (atomic_load_explicit(&registry.count, memory_order_relaxed) > 1 && keeper_may_ask()) {
        uint32_t process = os_process(), thread = os_thread_of_libc();
        if (thread != 0 && thread != process) {
            atomic_store_explicit(&cache->process, process, memory_order_relaxed);
            atomic_store_explicit(&cache->thread, thread, memory_order_relaxed);
        }
    }
}

/* Gives the calling thread a cache. False when memory is out, or the gate closed. */
static bool be_born(void) {
    if (!enter_outside()) {
        return false;
    }
    struct thread_cache *cache = new_cache();
    if (cache != NULL) {
        note_ids(cache);
        heap_join(&cache->heap);
        if (unlikely((modes() & MODE_HARDENED) != 0) && cache->hard == NULL) {
            cache->hard = hardened_cache();
        }
        if (unlikely((modes() & MODE_GUARDED) != 0) && cache->summons == NULL) {
            cache->summons = sampling_summons();
        }
        struct thread_view *view = &thread_view;
        view->cache = cache; /* by_step leaves every slot out until blocks are taken: see begin_taking */
        view->state = THREAD_ALIVE;
    }
    thread_leave_outside();
    if (cache == NULL) {
        return false;
    }
    keeper_note_thread();
    uint32_t known = atomic_load_explicit(&registry.looked_through, memory_order_relaxed) + UNSEEN_CACHES;
    if (unlikely(atomic_load_explicit(&registry.count, memory_order_relaxed) >= known)) {
        keeper_wish();
    }
    /* Last, since these may allocate. */
    if (life.has_key) {
        (void)DIRECT(pthread_setspecific)(life.key, (void *)1);
    }
    fork_watch();
    return true;
}

OUT_OF_LINE enum pass thread_enter_without_cache(void) {
    if (!thread_start()) {
        return PASS_REFUSED;
    }
    if (thread_view.state != THREAD_ENDED && be_born() && cache_enter(thread_view.cache)) {
        return PASS_CACHE;
    }
    return enter_outside() ? PASS_OUTSIDER : PASS_REFUSED;
}

bool thread_is_inside(void) {
    return thread_view.outside != 0 || atomic_load_explicit(&thread_view.cache->busy, memory_order_relaxed) != 0;
}

/* Whoever holds the registry's lock is inside; so this waits for nobody. */
bool thread_is_alone_inside(void) {
    if (!lock_try(&registry.lock)) {
        return false;
    }
    bool alone = true;
    /* seq_cst: see gate.h. The caches first: who ends turns from one with a cache into an outsider. */
    for (struct thread_cache *cache = registry.alive; cache != NULL; cache = cache->next) {
        bool own = cache == thread_view.cache;
        alone &= own || atomic_load_explicit(&cache->busy, memory_order_seq_cst) == 0;
    }
    alone &= atomic_load_explicit(&gate.outsiders, memory_order_seq_cst) == thread_view.outside;
    lock_free(&registry.lock);
    return alone;
}

enum pass thread_enter(void) { return thread_go_inside(); }

void thread_leave(enum pass pass) { thread_come_out(pass); }

/* Whether the caller may wait for the fork that keeps it outside: not if it is the forking thread, or a signal handler on a thread that is
 * inside, for which the fork waits. */
static bool may_await_fork(void) {
    return atomic_load_explicit(&life.started, memory_order_acquire) && !thread_is_inside() && !fork_is_own();
}

OUT_OF_LINE enum pass thread_enter_at_last(void) {
    enum { TRIES = 10000 }; /* also where the clock stands still */
    struct patience patience = patience_begin();
    enum pass pass = thread_go_inside();
    for (int try = 0; pass == PASS_REFUSED && try < TRIES; try++) {
        if (!may_await_fork() || !turns_await_opening_at_last(&patience)) {
            break;
        }
        pass = thread_go_inside();
    }
    return pass;
}

static void *take_shelter(size_t bytes, size_t alignment) {
    struct thread_view *view = &thread_view;
    if (view->state == THREAD_UNBORN && life.has_key) { /* so that its end is seen */
        view->state = THREAD_SHELTERED; /* first: what follows may allocate */
        if (DIRECT(pthread_setspecific)(life.key, (void *)1) != 0) {
            view->state = THREAD_UNBORN;
        }
    }
    bool ends = view->state == THREAD_ALIVE || view->state == THREAD_SHELTERED;
    return ends ? shelter_take(bytes, alignment) : shelter_take_alone(bytes, alignment);
}

OUT_OF_LINE enum pass thread_take_shelter(size_t bytes, size_t alignment, void **block) {
    *block = take_shelter(bytes, alignment);
    return *block != NULL ? PASS_REFUSED : thread_enter_at_last();
}

/* -- emptying ------------------------------------------------------------------------------------------------ */

static void flush_magazine(struct thread_cache *cache, unsigned slot, void **top) {
    unsigned class = slot_class(slot);
    heap_flush(heap_of(cache, class), class, top);
}

bool cache_flush_previous(struct thread_cache *cache, unsigned slot) {
    struct cache_class *magazines = &cache->slots[slot];
    void **top = magazines->previous;
    magazines->previous = NULL;
    unsigned class = slot_class(slot);
    return top != NULL && heap_flush_with_lock(heap_of(cache, class), class, top);
}

void thread_point_steps(unsigned class, struct cache_class *magazines) {
    if (class_bytes[class] <= STEP_LARGEST) {
        unsigned step = class == 0 ? 0 : class_bytes[class - 1] >> CLASS_STEP_BITS;
        for (; step < class_bytes[class] >> CLASS_STEP_BITS; step++) {
            thread_view.by_step[step] = magazines;
        }
    }
}

/* The fast paths of this thread take blocks of the class from there. */
static bool is_pointed_at(unsigned class, const struct cache_class *magazines) {
    return class_bytes[class] <= STEP_LARGEST &&
           thread_view.by_step[(class_bytes[class] >> CLASS_STEP_BITS) - 1] == magazines;
}

/* Where the slot is of the heap before, the thread takes from another by now. */
static void end_taking(struct thread_cache *cache, unsigned slot) {
    cache->slots[slot].taken = TAKING_NOT;
    if (is_pointed_at(slot_class(slot), &cache->slots[slot])) {
        thread_point_steps(slot_class(slot), &cache->slots[0]);
    }
}

static void flush_slot(struct thread_cache *cache, unsigned slot) {
    struct cache_class *magazines = &cache->slots[slot];
    void **top = slot_unload(magazines);
    if (top != VOID_TOP) {
        flush_magazine(cache, slot, top);
    }
    if (cache_flush_previous(cache, slot)) {
        arena_age();
    }
}

void cache_flush_slot(struct thread_cache *cache, unsigned slot) {
    end_taking(cache, slot);
    flush_slot(cache, slot);
}

void cache_flush(struct thread_cache *cache) {
    if (unlikely(cache->hard != NULL)) {
        hardened_flush(cache->hard, heap_number(cache->heap));
    }
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        if (cache->slots[slot].top != VOID_TOP) { /* without a loaded magazine there is none at all */
            cache_flush_slot(cache, slot);
        }
    }
}

/* -- the end ------------------------------------------------------------------------------------------------- */

/* The thread has no cache any more: destructors and libc still allocate and free. */
static void forget_cache(void) {
    struct thread_view *view = &thread_view;
    for (unsigned step = 0; step < STEP_COUNT; step++) {
        view->by_step[step] = &thread_cache_none.slots[0];
    }
    view->cache = &thread_cache_none;
    view->state = THREAD_ENDED;
}

/* The thread is inside with the cache it gives up, and inside without when this is over. */
static void give_up_cache(struct thread_cache *cache) {
    cache_flush(cache);
    thread_view.outside = 1;
    forget_cache();
    atomic_fetch_add_explicit(&gate.outsiders, 1, memory_order_seq_cst); /* it need not ask: it is inside already */
    lock_take(&registry.lock);
    cache->owner = NULL;
    unlink_cache(cache);
    /* Here and not before: who borrows looks under this lock, and would find a cache that is about to go. Nor later: it is another's then. */
    atomic_store_explicit(&cache->busy, 0, memory_order_seq_cst);
    lock_free(&registry.lock);
    heap_leave(&cache->heap);
    keep_unused(cache);
    thread_leave_outside();
}

/* By the key. The cache goes at the first visit, though destructors that are called later do without: one that was born in a late pass over the
 * keys is never visited again. */
static void end_thread(void *key) {
    (void)key;
    enum thread_state state = thread_view.state;
    if (state == THREAD_ALIVE) {
        struct thread_cache *cache = thread_view.cache;
        if (cache_enter(cache)) {
            give_up_cache(cache);
        } else { /* a fork: whoever comes next takes it over */
            forget_cache();
            cache->owner = NULL;
            atomic_store_explicit(&cache->orphan, 1, memory_order_seq_cst); /* first: see thread_make_orphans */
            atomic_fetch_add_explicit(&registry.orphans, 1, memory_order_seq_cst);
        }
    } else if (state == THREAD_SHELTERED) {
        thread_view.state = THREAD_ENDED;
    }
    if (state == THREAD_ALIVE || state == THREAD_SHELTERED) {
        shelter_leave();
    }
    thread_serve_wishes(); /* what the cache held may be free spans by now, and no call may follow */
}

/* -- what threads have left ---------------------------------------------------------------------------------- */

/* An orphan, which is the caller's then; NULL when there is none. One that is borrowed is left for later. */
static struct thread_cache *take_orphan(void) {
    bool any = false;
    lock_take(&registry.lock);
    uint32_t counted = atomic_load_explicit(&registry.orphans, memory_order_acquire);
    struct thread_cache *cache = take_left();
    for (struct thread_cache *next = registry.alive; cache == NULL && next != NULL; next = next->next) {
        bool orphan = atomic_load_explicit(&next->orphan, memory_order_acquire) != 0;
        any |= orphan;
        if (orphan && atomic_load_explicit(&next->borrowed, memory_order_acquire) == 0) {
            cache = next;
            unlink_cache(cache);
        }
    }
    if (cache != NULL) {
        any = true;
        registry.adopting++;
    }
    /* One was counted twice; who counts himself meanwhile is not forgotten. Relaxed: a hint. */
    if (!any && registry.adopting == 0 && counted != 0) {
        (void)atomic_compare_exchange_strong_explicit(&registry.orphans, &counted, 0, memory_order_relaxed,
                                                      memory_order_relaxed);
    }
    lock_free(&registry.lock);
    return cache;
}

/* The thread that took from it is no more. By the keeper too, which has no thread_view. */
static void flush_orphans_slot(struct thread_cache *cache, unsigned slot) {
    cache->slots[slot].taken = TAKING_NOT;
    flush_slot(cache, slot);
}

bool thread_adopt_some(void) {
    struct thread_cache *cache = take_orphan();
    if (cache == NULL) {
        return false;
    }
    if (unlikely(cache->summons != NULL)) {
        sampling_answer(cache);
    }
    unsigned flushed = 0;
    unsigned slot = 1;
    for (; slot < SLOT_COUNT && flushed < ADOPT_SLOTS; slot++) {
        if (cache->slots[slot].top != VOID_TOP) {
            flush_orphans_slot(cache, slot);
            flushed++;
        }
    }
    bool finished = slot == SLOT_COUNT;
    if (unlikely(finished && cache->hard != NULL)) {
        hardened_flush(cache->hard, heap_number(cache->heap));
    }
    lock_take(&registry.lock);
    registry.adopting--;
    if (finished) {
        gate_count_down(&registry.orphans); /* under the lock: else one that was counted since might be counted down */
    } else { /* the rest is for the next */
        link_left(cache);
    }
    lock_free(&registry.lock);
    if (finished) {
        heap_leave(&cache->heap);
        keep_unused(cache);
    }
    return true;
}

void thread_adopt_all(void) {
    while (thread_adopt_some()) {
    }
}

void thread_make_orphans(struct thread_cache *spared) {
    bool spares = spared != &thread_cache_none;
    if (spares) {
        unlink_cache(spared);
    }
    uint32_t left = atomic_load_explicit(&registry.count, memory_order_relaxed) + registry.left_count;
    if (registry.alive != NULL && registry.left != NULL) { /* each page that is written to is copied */
        registry.last->next = registry.left;
    }
    registry.left = registry.alive != NULL ? registry.alive : registry.left;
    registry.alive = registry.last = registry.cursor = registry.to_summon = NULL;
    atomic_store_explicit(&registry.count, 0, memory_order_relaxed);
    registry.left_count = left;
    if (spares) {
        atomic_store_explicit(&spared->borrowed, 0, memory_order_relaxed);
        atomic_store_explicit(&spared->thread, 0, memory_order_relaxed); /* another here */
        link_cache(spared);
    }
    for (unsigned place = 0; place < BIRTH_PLACES; place++) {
        registry.born[place] = registry.born[place] == spared ? spared : NULL;
    }
    /* The thread that forked may end meanwhile, and says so in its cache before it counts itself: it is counted twice perhaps, never
     * missed. seq_cst, all four: either its cache is seen here, or it counts itself after the 0. */
    atomic_store_explicit(&registry.orphans, 0, memory_order_seq_cst);
    left += spares ? atomic_load_explicit(&spared->orphan, memory_order_seq_cst) : 0;
    left += registry.adopting; /* by this thread, in a frame that a signal interrupted */
    atomic_store_explicit(&registry.postponed, POSTPONED_VISITS, memory_order_relaxed);
    atomic_fetch_add_explicit(&registry.orphans, left, memory_order_relaxed);
}

/* -- who works ----------------------------------------------------------------------------------------------- */

unsigned thread_workers(struct thread_cache *cache) {
    uint32_t epoch = atomic_load_explicit(&workers.epoch, memory_order_relaxed) + 1; /* not the 0 of a new cache */
    if (cache->epoch != epoch) {
        cache->epoch = epoch;
        atomic_fetch_add_explicit(&workers.now, 1, memory_order_relaxed);
    }
    /* A count that raced with the change of epochs may be one too low: then it reads as none. */
    int32_t now = (int32_t)atomic_load_explicit(&workers.now, memory_order_relaxed);
    int32_t before = (int32_t)atomic_load_explicit(&workers.before, memory_order_relaxed);
    int32_t most = now > before ? now : before;
    return most > 0 ? (unsigned)most : 0;
}

void thread_look_at_clock(void) {
    uint32_t present = (uint32_t)(os_milliseconds() / EPOCH_MS);
    uint32_t epoch = atomic_load_explicit(&workers.epoch, memory_order_relaxed);
    if (present != epoch && atomic_compare_exchange_strong_explicit(&workers.epoch, &epoch, present,
                                                                    memory_order_relaxed, memory_order_relaxed)) {
        uint32_t now = atomic_exchange_explicit(&workers.now, 0, memory_order_relaxed);
        atomic_store_explicit(&workers.before, present - epoch == 1 ? now : 0, memory_order_relaxed);
    }
}
