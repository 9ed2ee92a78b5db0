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
 * inside. */
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

/* Sends home what is in a loaded magazine that its thread only pushes to. */
static void deliver(struct cache_class *magazines) {
    void **top = __atomic_load_n(&magazines->top, __ATOMIC_ACQUIRE);
    union magazine *magazine = magazine_of(top);
    if (top == VOID_TOP || top == &magazine->word[magazine->bottom]) {
        return;
    }
    void *blocks[MAGAZINE_MOST];
    unsigned count = 0;
    unsigned noted = (unsigned)(top - magazine->word);
    for (unsigned word = magazine->bottom + 1; word <= noted; word++) {
        blocks[count++] = __atomic_load_n(&magazine->word[word], __ATOMIC_RELAXED);
    }
    magazine->bottom = noted;
    __atomic_store_n(&magazine->word[noted], NULL, __ATOMIC_RELAXED);
    heap_give(blocks, count);
}

/* Its thread has come, and waits. */
static bool is_wanted(struct thread_cache *cache) {
    return atomic_load_explicit(&cache->borrowed, memory_order_relaxed) == 2;
}

static void relieve(struct thread_cache *cache) {
    for (unsigned slot = 1; slot < SLOT_COUNT && !is_wanted(cache); slot++) {
        cache_flush_previous(cache, slot);
        if (!cache->slots[slot].taken) {
            deliver(&cache->slots[slot]);
        }
    }
}

void borrow_caches(const struct thread_cache *own, bool all, bool (*goes_on)(void)) {
    lock_take(&borrowing);
    lock_take(&registry.lock);
    registry.cursor = registry.alive;
    lock_free(&registry.lock);
    bool more = true;
    while (more && goes_on()) {
        struct thread_cache *cache;
        more = borrow_next(own, all, &cache);
        if (cache != NULL) {
            relieve(cache);
            if (give_back(cache)) {
                os_wake(&cache->borrowed);
            }
        }
    }
    lock_free(&borrowing);
}

void borrow_after_fork(void) { lock_reset(&borrowing); }
