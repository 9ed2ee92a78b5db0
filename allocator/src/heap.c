#include "heap.h"

#include "heap_inside.h"
#include "keeper.h"
#include "message.h"
#include "os.h"
#include "street.h"

enum {
    DENSE_SLABS = 32,                /* full slabs that promise that the next will be filled too, and outweigh it */
    DEPOT_OTHERS_BYTES = 128 * 1024, /* in all of a heap's depots, from which on it keeps no more of other heaps' */
    SETTLE_EVENTS = 64,              /* exchanges between two looks at the clock */
    SETTLE_MS = 250,                 /* a depot's magazines unneeded for this long are due, */
    SETTLE_BYTES = 1024 * 1024,      /* and those unneeded while the heap took this many bytes of slabs, */
    SETTLE_SHARE = 16,               /* or this share of those it has */
    SETTLE_TRAFFIC = 4 * 1024 * 1024, /* what a depot did not need while so many bytes were exchanged is cold anyway */
    DRAIN_MAGAZINES = 2, /* of what is due, drained in one exchange: more than it can bring, so that nothing piles up */
    KEEPER_BYTES = 4 * 1024 * 1024, /* free in bitmaps since the last look: worth a thread that returns it */
};

/* Asks the kernel for what magazines will need; no lock is held. */
static inline void prepare(void) {
    if (unlikely(street_bookkeeping_is_low())) {
        (void)street_bookkeeping_grow();
    }
}

/* -- what is due --------------------------------------------------------------------------------------------- */

/* Blocks are about to be exchanged. From a depot they come in the order in which they were freed, from the bitmaps in that of
 * their addresses, neighbours on one cache line: the depot's are better only while they are still in a cache. */
static void count_traffic(struct heap *heap, unsigned class, unsigned blocks) {
    heap->traffic += blocks * class_bytes[class];
    if (unlikely(heap->traffic > SETTLE_TRAFFIC)) {
        heap->traffic = 0;
        depot_mark_unneeded(heap);
    }
}

/* Now and then says what the depots did not need since the last time: by the clock, and, since a block in a depot keeps
 * a whole slab from being used for something else, before the heap grows by more than a little. Some of what is due is drained at each
 * exchange. True when it did. */
static bool settle(struct heap *heap) {
    bool grown = heap->grown > SETTLE_BYTES && heap->grown > heap->slab_bytes / SETTLE_SHARE;
    if (likely(++heap->events % SETTLE_EVENTS != 0 && !grown)) {
        return false;
    }
    uint64_t now = os_milliseconds();
    if (now - heap->settled < SETTLE_MS && !grown) {
        return false;
    }
    heap->settled = now;
    heap->grown = 0;
    depot_mark_unneeded(heap);
    atomic_fetch_add_explicit(&heap->seasons, 1, memory_order_relaxed);
    return true;
}

uint32_t heap_season(struct heap *heap) {
    /* relaxed: any recent value will do; where the heap is its own host every season counts twice, which is as well */
    return atomic_load_explicit(&heap->seasons, memory_order_relaxed) +
           atomic_load_explicit(&heap->host->seasons, memory_order_relaxed);
}

/* -- leaving ------------------------------------------------------------------------------------------------- */

/* Frees the heap's lock. True when the arena may have to purge. */
static bool unlock_heap(struct heap *heap) {
    bool due = heap->gave_slab;
    heap->gave_slab = false;
    size_t returnable = heap_returnable(heap);
    if (unlikely(returnable >= heap->looked_at + KEEPER_BYTES)) {
        keeper_wish();
    }
    heap->looked_at = bits_min(heap->looked_at, returnable);
    budget_publish(heap, returnable);
    lock_free(&heap->lock);
    return due;
}

/* Frees a magazine's blocks, none of which need be of one heap, into the bitmaps of their heaps, one lock at a time. The
 * magazine is then the caller's. True when the arena may have to purge. */
static bool send_home(unsigned class, union magazine *magazine) {
    bool due = false, done = false;
    while (!done) {
        void **top = magazine_full_top(magazine);
        struct heap *home = flush_home(*top, class);
        if (home == NULL) {
            message_double_free(*top, "size class", class_bytes[class]);
        }
        lock_take(&home->lock);
        done = flush_blocks(home, class, top);
        due |= unlock_heap(home);
    }
    return due;
}

/* The same for all that were found among others; each magazine stays as a spare of the heap. */
static OUT_OF_LINE bool send_strays(struct heap *heap, union magazine *strays) {
    bool due = false;
    while (strays != NULL) {
        union magazine *next = strays->next;
        due |= send_home(strays->size_class, strays);
        lock_take(&heap->lock);
        depot_keep_spare(heap, strays);
        lock_free(&heap->lock);
        strays = next;
    }
    return due;
}

/* Frees the heap's lock and sends home what was found of others'. True when the arena may have to purge. */
static bool come_out(struct heap *heap) {
    union magazine *strays = heap->strays;
    heap->strays = NULL;
    bool due = unlock_heap(heap);
    if (unlikely(strays != NULL)) {
        due |= send_strays(heap, strays);
    }
    return due;
}

/* The same, and then lets the arena purge if that may be due. */
static void leave_heap(struct heap *heap, bool settled) {
    if (come_out(heap) || settled) {
        arena_age();
    }
}

/* The same for the keeper, who wishes for nothing and looks at the arena himself. */
void heap_leave_quietly(struct heap *heap) {
    union magazine *strays = heap->strays;
    heap->strays = NULL;
    budget_publish(heap, heap_returnable(heap));
    lock_free(&heap->lock);
    if (strays != NULL) {
        (void)send_strays(heap, strays);
    }
}

/* -- magazines ----------------------------------------------------------------------------------------------- */

void **heap_spare(struct heap *heap, unsigned capacity) {
    prepare();
    lock_take(&heap->lock);
    union magazine *magazine = depot_take_spare(heap);
    lock_free(&heap->lock);
    return magazine == NULL ? NULL : magazine_clear(magazine, capacity);
}

void heap_return_spare(struct heap *heap, void **top) {
    lock_take(&heap->lock);
    depot_keep_spare(heap, magazine_of(top));
    lock_free(&heap->lock);
}

/* The top of a magazine that `taken` blocks were stored into from its end: full at that many, empty with room for `capacity`
 * when there are none. */
static void **filled(union magazine *magazine, unsigned taken, unsigned capacity) {
    void **bottom = magazine_clear(magazine, taken > 0 ? taken : capacity);
    return taken > 0 ? magazine_full_top(magazine) : bottom;
}

/* A slab more for the heap, whose lock is free meanwhile: the arena may ask the kernel. False when memory is out. */
static bool add_slab(struct heap *heap, unsigned class) {
    bool dense = heap->shelf[class].blocks >= DENSE_SLABS * class_blocks(class);
    lock_free(&heap->lock);
    uint32_t slab = slab_make(class, heap->number, dense);
    lock_take(&heap->lock);
    if (slab != 0) {
        shelf_add(heap, class, slab);
        lend_begin(heap, class);
    }
    return slab != 0;
}

/* Takes up to `want` blocks and stores them downwards from `end`; fewer only near the limit, and when memory is out. */
static unsigned take_blocks(struct heap *heap, unsigned class, void **end, unsigned want) {
    unsigned taken = 0;
    while (taken < want) {
        uint32_t slab = shelf_choose(&heap->shelf[class]);
        unsigned more = slab == 0 ? lend_take(heap, class, end - taken, want - taken)
                                  : shelf_take(heap, slab, end - taken, want - taken);
        taken += more;
        if (more == 0 && (slab != 0 || !add_slab(heap, class))) {
            bool all;
            return taken > 0 ? taken : shelf_take_charged(heap, class, end, want, &all);
        }
    }
    return taken;
}

void **heap_exchange_empty(struct heap *heap, unsigned class, void **empty, unsigned capacity) {
    union magazine *magazine = empty == NULL ? NULL : magazine_of(empty);
    prepare();
    lock_take(&heap->lock);
    bool settled = settle(heap);
    count_traffic(heap, class, capacity);
    union magazine *full = depot_pop(heap, class);
    void **top = NULL;
    if (full != NULL) {
        if (magazine != NULL) {
            depot_keep_spare(heap, magazine);
        }
        top = magazine_unfold(magazine_full_top(full));
    } else if (magazine != NULL || (magazine = depot_take_spare(heap)) != NULL) {
        top = filled(magazine, take_blocks(heap, class, &magazine->word[MAGAZINE_WORDS], capacity), capacity);
    }
    (void)depot_drain(heap, DRAIN_MAGAZINES);
    size_t came = budget_due(heap);
    leave_heap(heap, settled);
    if (unlikely(came != 0)) {
        budget_keep(came);
    }
    return top;
}

/* Free blocks of the slab that were taken before: those that never were are the highest, and all free. */
static unsigned used_blocks(const struct span *span) { return span->free_blocks - (span->blocks - span->fresh); }

/* take_blocks of blocks that were in use before, as far as the slabs that would be taken from have any, and the kernel has none of their pages
 * back: these are better taken one by one by somebody who wants zeros. */
static unsigned take_used(struct heap *heap, unsigned class, void **end, unsigned want) {
    unsigned taken = 0;
    while (taken < want && heap->shelf[class].slabs != 0) {
        uint32_t slab = shelf_choose(&heap->shelf[class]);
        unsigned used = used_blocks(arena_span(slab));
        if (used == 0 || arena_span(slab)->clean_pages > 0) {
            break;
        }
        taken += shelf_take(heap, slab, end - taken, (unsigned)bits_min(used, want - taken));
    }
    return taken;
}

void **heap_exchange_used(struct heap *heap, unsigned class, void **empty, unsigned capacity) {
    union magazine *magazine = magazine_of(empty);
    void **top;
    lock_take(&heap->lock);
    union magazine *full = depot_pop(heap, class);
    if (full != NULL) {
        depot_keep_spare(heap, magazine);
        top = magazine_unfold(magazine_full_top(full));
    } else {
        top = filled(magazine, take_used(heap, class, &magazine->word[MAGAZINE_WORDS], capacity), capacity);
    }
    count_traffic(heap, class, magazine_count(top));
    (void)depot_drain(heap, DRAIN_MAGAZINES);
    leave_heap(heap, false);
    return top;
}

/* The heap that two of three of a full magazine's blocks belong to, `top` that of the first; NULL when each is another's. Magazines that are
 * mixed by chance stay where they are so, instead of carrying a heap's blocks away with a few of others'. */
static struct heap *home_of_most(struct heap *top, void **full, unsigned class) {
    union magazine *magazine = magazine_of(full);
    unsigned blocks = magazine_capacity(magazine);
    struct heap *middle = flush_home(full[-(ptrdiff_t)(blocks / 2)], class);
    struct heap *bottom = flush_home(magazine->word[magazine->bottom + 1], class);
    return top == middle || top == bottom ? top : middle == bottom ? middle : NULL;
}

void **heap_exchange_full(struct heap *heap, unsigned class, void **full, unsigned capacity, enum trade trade) {
    union magazine *magazine = magazine_of(full);
    struct heap *home = flush_home(*full, class);
    struct heap *most = trade == GIVES_AND_TAKES ? NULL : home_of_most(home, full, class);
    struct heap *at = heap;
    if (trade == ONLY_GIVES && home != NULL) {
        at = most != NULL ? most : home;
    }
    prepare();
    lock_take(&at->lock);
    bool settled = settle(at);
    count_traffic(at, class, magazine_capacity(magazine));
    bool enough = most != NULL && most != at && at->depot_bytes >= DEPOT_OTHERS_BYTES;
    union magazine *spare = enough ? NULL : depot_keep(at, class, magazine, capacity);
    struct heap *next = enough ? most : home;
    if (spare == NULL && next != NULL && next != at) {
        leave_heap(at, settled);
        at = next;
        lock_take(&at->lock);
        settled = false;
        spare = depot_keep(at, class, magazine, capacity);
    }
    bool done = spare != NULL || flush_blocks(at, class, full);
    (void)depot_drain(at, DRAIN_MAGAZINES);
    leave_heap(at, settled);
    if (unlikely(!done) && send_home(class, magazine)) {
        arena_age();
    }
    return magazine_clear(spare == NULL ? magazine : spare, capacity);
}

bool heap_flush_with_lock(struct heap *heap, unsigned class, void **top) {
    union magazine *magazine = magazine_of(top);
    lock_take(&heap->lock);
    bool done = magazine_is_empty(top) || flush_blocks(heap, class, top);
    if (done) {
        depot_keep_spare(heap, magazine);
    }
    bool due = come_out(heap);
    if (unlikely(!done)) {
        due |= send_home(class, magazine);
        heap_return_spare(heap, top);
    }
    return due;
}

void heap_flush(struct heap *heap, unsigned class, void **top) {
    if (heap_flush_with_lock(heap, class, top)) {
        arena_age();
    }
}

/* -- without a cache ----------------------------------------------------------------------------------------- */

void *heap_take_one(struct heap *heap, unsigned class, struct zeros *zeros) {
    void *block = NULL;
    *zeros = (struct zeros){0, 0};
    lock_take(&heap->lock);
    uint32_t slab = shelf_choose(&heap->shelf[class]);
    if (slab == 0 && add_slab(heap, class)) {
        slab = shelf_choose(&heap->shelf[class]); /* perhaps another than was added */
    }
    if (slab != 0) {
        *zeros = slab_next_zeros(slab);
        if (shelf_take(heap, slab, &block + 1, 1) == 0) {
            bool all;
            *zeros = (struct zeros){0, 0};
            (void)shelf_take_charged(heap, class, &block + 1, 1, &all);
        }
    }
    size_t came = budget_due(heap);
    (void)unlock_heap(heap); /* a slab of memory that was in use may be worth a keeper */
    if (unlikely(came != 0)) {
        budget_keep(came);
    }
    return block;
}

static struct heap *owner_or_die(const void *block) {
    struct heap *owner = flush_owner(block);
    if (unlikely(owner == NULL)) {
        size_t bytes = 0;
        (void)arena_was_freed(block, &bytes);
        message_double_free(block, "span", bytes);
    }
    return owner;
}

bool heap_give_with_lock(void **blocks, unsigned count) {
    bool due = false;
    while (count > 0) {
        struct heap *owner = owner_or_die(blocks[0]);
        unsigned others = 0;
        lock_take(&owner->lock);
        for (unsigned i = 0; i < count; i++) {
            if (owner_or_die(blocks[i]) == owner) { /* asked under the lock: its slab cannot go meanwhile */
                flush_one(owner, blocks[i]);
            } else {
                blocks[others++] = blocks[i];
            }
        }
        due |= come_out(owner);
        count = others;
    }
    return due;
}

void heap_give(void **blocks, unsigned count) {
    if (heap_give_with_lock(blocks, count)) {
        arena_age();
    }
}
