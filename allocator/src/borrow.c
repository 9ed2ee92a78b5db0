/* What others may do with a thread's cache. A thread that sleeps keeps in its magazines what is neither a free span nor free in a slab, and only
 * somebody else can tell that it sleeps.
 *
 * The handshake. The borrower says so in the cache (borrowed := 1) and then asks whether the thread is inside (busy); a thread says that it is
 * inside and then asks whether its cache is borrowed. All four in one order for all threads (seq_cst): either the borrower sees the
 * thread inside and gives the cache back untouched, or the thread sees the cache borrowed and waits. While it is borrowed
 *
 *   - what a thread only touches inside is the borrower's: every slot's other magazine, a magazine's bottom, `taken`;
 *   - what fast paths touch is the thread's: it pops from slots that it takes from, and pushes to any.
 *
 * So of a loaded magazine the borrower takes only where the thread does nothing but push (taken is false): from the bottom up to the top as it
 * was noted. A push writes the block and then the top (release); the borrower reads the top (acquire) and so finds the blocks below
 * it. It raises the bottom, which the thread does not look at outside. A cache that is borrowed cannot go: its thread, to end, has to come
 * inside.
 *
 * Summons (sampling.h). Of a slot that the thread takes from the borrower may withhold the loaded magazine: he notes its top and puts that of
 * the void in its place, by a compare-and-swap. A fast path that has read the top before and is about to write another one writes over
 * it: then nothing is withheld, the note is out of date, and whoever finds the slot not void knows so. One that reads the void writes
 * nothing and comes inside, where it waits for the cache to be given back. So no top is lost, and none is there twice.
 *
 * Threads that end unseen. A thread that is born in the last pass over the keys of pthreads is never visited by the library's key. The borrower asks
 * the kernel whether the thread of the cache is gone, and makes the cache an orphan. An id that is another thread's by now reads as
 * alive; then the cache stays until that one has ended too. */
#include "arena.h"
#include "keeper.h"
#include "os.h"
#include "thread_inside.h"

static struct lock borrowing; /* one borrower at a time; taken before the registry's */

/* -- the handshake ------------------------------------------------------------------------------------------- */

/* True when its thread waits for that, and is to be woken. */
static bool give_back(struct thread_cache *cache) {
    /* release: the thread finds what was done */
    return atomic_exchange_explicit(&cache->borrowed, 0, memory_order_release) == 2;
}

/* False when its thread is inside; then it may also wait. */
static bool borrow(struct thread_cache *cache, bool *waits) {
    atomic_store_explicit(&cache->borrowed, 1, memory_order_seq_cst);
    bool borrowed = atomic_load_explicit(&cache->busy, memory_order_seq_cst) == 0;
    *waits = !borrowed && give_back(cache);
    return borrowed;
}

/* Its thread was not inside since the last look. */
static bool is_unused(struct thread_cache *cache) {
    uint32_t visits = atomic_load_explicit(&cache->visits, memory_order_relaxed);
    bool unused = visits == cache->seen;
    cache->seen = visits;
    return unused;
}

/* Looks at a few caches for one that can be borrowed, NULL when none of them is; few, because births and ends of threads wait for the
 * lock. False at the end of the list. */
static bool borrow_next(const struct thread_cache *own, bool all, struct thread_cache **cache) {
    enum { FEW = 16 };
    struct thread_cache *next = NULL;
    bool borrowed = false, waits = false;
    lock_take(&registry.lock);
    for (int seen = 0; !borrowed && !waits && registry.cursor != NULL && seen < FEW; seen++) {
        next = registry.cursor;
        registry.cursor = next->next;
        borrowed = (is_unused(next) || all) && next != own && borrow(next, &waits);
    }
    bool more = registry.cursor != NULL;
    lock_free(&registry.lock);
    if (waits) { /* without the lock: what it sleeps on stays, whoever's it is by now */
        os_wake(&next->borrowed);
    }
    *cache = borrowed ? next : NULL;
    return more;
}

/* -- while it is borrowed ------------------------------------------------------------------------------------ */

/* Sends home what is in a loaded magazine that its thread only pushes to. True when the arena may have to purge. */
static bool deliver(struct cache_class *magazines) {
    void **top = __atomic_load_n(&magazines->top, __ATOMIC_ACQUIRE);
    union magazine *magazine = magazine_of(top);
    if (top == VOID_TOP || top == &magazine->word[magazine->bottom]) {
        return false;
    }
    void *blocks[MAGAZINE_MOST];
    unsigned count = 0;
    unsigned noted = (unsigned)(top - magazine->word);
    for (unsigned word = magazine->bottom + 1; word <= noted; word++) {
        blocks[count++] = __atomic_load_n(&magazine->word[word], __ATOMIC_RELAXED);
    }
    magazine->bottom = noted;
    __atomic_store_n(&magazine->word[noted], MAGAZINE_NONE, __ATOMIC_RELAXED);
    return heap_give_with_lock(blocks, count);
}

/* Its thread has come, and waits. */
static bool is_wanted(struct thread_cache *cache) {
    return atomic_load_explicit(&cache->borrowed, memory_order_relaxed) == 2;
}

static bool relieve(struct thread_cache *cache) {
    bool due = false;
    for (unsigned slot = 1; slot < SLOT_COUNT && !is_wanted(cache); slot++) {
        due |= cache_flush_previous(cache, slot);
        if (!cache->slots[slot].taken) {
            due |= deliver(&cache->slots[slot]);
        }
    }
    return due;
}

/* The process whose threads the caller may ask the kernel for, 0 if it may not. Only if the kernel knows the caller by the id that was noted: not in
 * a child of vfork or another task that runs with this thread's cache, perhaps among other ids; nor after a restart from a checkpoint. */
static uint32_t asked_process(const struct thread_cache *own) {
    if (!keeper_may_ask()) {
        return 0;
    }
    const _Atomic uint32_t *noted = own != NULL ? &own->thread : &gate.page->keeper;
    uint32_t thread = atomic_load_explicit(noted, memory_order_relaxed);
    return thread != 0 && thread == os_thread() ? os_process() : 0;
}

/* While it is borrowed. Nobody else changes the ids then: the cache cannot go, and cannot become another thread's. */
static bool has_lost_its_thread(const struct thread_cache *cache, uint32_t process) {
    return process != 0 && atomic_load_explicit(&cache->thread, memory_order_relaxed) != 0 &&
           atomic_load_explicit(&cache->process, memory_order_relaxed) == process &&
           os_thread_is_gone(process, atomic_load_explicit(&cache->thread, memory_order_relaxed));
}

void borrow_caches(const struct thread_cache *own, bool all, bool (*goes_on)(void)) {
    uint32_t process = asked_process(own);
    lock_take(&borrowing);
    lock_take(&registry.lock);
    registry.cursor = registry.alive;
    lock_free(&registry.lock);
    bool more = true, due = false;
    while (more && goes_on()) {
        struct thread_cache *cache;
        more = borrow_next(own, all, &cache);
        if (cache != NULL) {
            due |= relieve(cache);
            if (unlikely(has_lost_its_thread(cache, process))) {
                thread_abandon_borrowed(cache);
            }
            if (give_back(cache)) {
                os_wake(&cache->borrowed);
            }
        }
    }
    lock_free(&borrowing);
    if (due) {
        arena_age();
    }
}

/* -- summons --------------------------------------------------------------------------------------------------- */

static void withhold(struct thread_cache *cache) {
    struct summons *summons = cache->summons;
    /* relaxed, and the notes plain: the thread reads them when it is inside, once the cache was given back */
    atomic_store_explicit(&summons->out, 1, memory_order_relaxed);
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        struct cache_class *magazines = &cache->slots[slot];
        void **top = __atomic_load_n(&magazines->top, __ATOMIC_RELAXED);
        if (magazines->taken != TAKING || top == VOID_TOP) {
            continue;
        }
        summons->withheld[slot] = top;
        /* relaxed: what lies in the magazine is the thread's own */
        if (!__atomic_compare_exchange_n(&magazines->top, &top, VOID_TOP, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            summons->withheld[slot] = NULL;
        }
    }
}

/* Whether the thread waits for no summons; or has a magazine all the same: it has written over the void, as one that does nothing else does nearly
 * always, and will not come. While the cache is borrowed. */
static bool may_be_summoned(struct thread_cache *cache) {
    bool may = atomic_load_explicit(&cache->summons->out, memory_order_relaxed) == 0;
    for (unsigned slot = 1; !may && slot < SLOT_COUNT; slot++) {
        const struct cache_class *magazines = &cache->slots[slot];
        may = magazines->taken == TAKING && __atomic_load_n(&magazines->top, __ATOMIC_RELAXED) != VOID_TOP;
    }
    return may;
}

/* Looks at a few caches for one that can be borrowed and whose thread waits for no summons. */
static struct thread_cache *borrow_one_to_summon(void) {
    enum { AT_A_TIME = 16 };
    struct thread_cache *candidate = NULL;
    bool borrowed = false, waits = false;
    lock_take(&registry.lock);
    for (int seen = 0; !borrowed && !waits && seen < AT_A_TIME; seen++) {
        candidate = registry.to_summon != NULL ? registry.to_summon : registry.alive;
        if (candidate == NULL) {
            break;
        }
        registry.to_summon = candidate->next;
        bool known = candidate->summons != NULL && atomic_load_explicit(&candidate->orphan, memory_order_relaxed) == 0;
        borrowed = known && borrow(candidate, &waits);
        if (borrowed && !may_be_summoned(candidate)) {
            borrowed = false;
            waits = give_back(candidate);
        }
    }
    lock_free(&registry.lock);
    if (waits) {
        os_wake(&candidate->borrowed);
    }
    return borrowed ? candidate : NULL;
}

void borrow_to_summon(void) {
    lock_take(&borrowing);
    struct thread_cache *cache = borrow_one_to_summon();
    if (cache != NULL) {
        withhold(cache);
        if (give_back(cache)) {
            os_wake(&cache->borrowed);
        }
    }
    lock_free(&borrowing);
}

void borrow_after_fork(void) { lock_reset(&borrowing); }
