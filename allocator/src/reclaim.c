/* Memory back from the heaps: what depots did not need, slabs and pages that are free. In pieces: no lock is held for longer than one takes,
 * and none while the kernel works. */
#include "gate.h"
#include "heap_inside.h"
#include "limit.h"
#include "magazine_pool.h"
#include "memory_hooks.h"
#include "street.h"

enum { PIECE_MAGAZINES = 4 }; /* drained under a heap's lock at a time */
enum { PIECE_SPARE = 32 }; /* spare ones, taken from a heap under its lock at a time */

/* Drains what is due, piece by piece. */
static void drain(struct heap *heap) {
    bool more = true;
    while (more) {
        lock_take(&heap->lock);
        more = depot_drain(heap, PIECE_MAGAZINES);
        heap_leave_quietly(heap);
    }
}

static void drain_all(struct heap *heap) {
    lock_take(&heap->lock);
    depot_mark_all(heap);
    lock_free(&heap->lock);
    drain(heap);
}

/* Every class of the heap keeps a slab without a block in use at most where it was its only one. Only classes in which that was so since they
 * were last looked at: a program at its limit asks for this again and again. */
static void release_empty(struct heap *heap) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        lock_take(&heap->lock);
        uint64_t bit = UINT64_C(1) << class;
        uint32_t slab = (heap->empty_classes & bit) != 0 ? heap->shelf[class].slabs : 0;
        heap->empty_classes &= ~bit;
        while (slab != 0) {
            const struct span *span = arena_span(slab);
            uint32_t next = span->next;
            if (span->free_blocks == span->blocks) {
                shelf_release(heap, slab);
            }
            slab = next;
        }
        heap_leave_quietly(heap);
    }
}

/* -- pages of partly used slabs ------------------------------------------------------------------------------ */

static _Atomic uint32_t
    pieces; /* being cleaned just now; relaxed: who asks has locked the heap after he found nothing there */
static _Atomic uint32_t purged_pieces; /* since the start; as above */

bool heap_is_cleaning(void) { return atomic_load_explicit(&pieces, memory_order_relaxed) != 0; }

/* The slab's blocks on the piece's pages are out of its bitmap, and so nobody's, while the kernel works without the lock. */
static size_t clean_piece(struct heap *heap, uint32_t slab, struct slab_piece *piece) {
    struct span *span = arena_span(slab);
    unsigned class = span->size_class;
    heap->free_blocks -= piece->blocks;
    heap->free_bytes -= (size_t)piece->blocks * class_bytes[class];
    if (span->free_blocks == 0) {
        shelf_unlist(&heap->shelf[class], slab);
    }
    atomic_fetch_add_explicit(&pieces, 1, memory_order_relaxed);
    lock_free(&heap->lock);
    bool purged = slab_purge(slab, piece);
    lock_take(&heap->lock);
    atomic_fetch_add_explicit(&purged_pieces, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&pieces, 1, memory_order_relaxed);
    if (span->free_blocks == 0) {
        shelf_list(&heap->shelf[class], slab);
    }
    size_t bytes = slab_put_back(slab, piece, purged);
    heap->free_blocks += piece->blocks;
    heap->free_bytes += (size_t)piece->blocks * class_bytes[class];
    heap->clean_bytes += bytes;
    limit_release(bytes);
    return bytes;
}

static bool is_left(const struct heap_effort *effort) { return effort->pieces > 0 && effort->bytes > 0; }

/* Cleans a slab under its heap's lock, within the effort; true if blocks were taken from it meanwhile, and the rest of it is left alone. */
static bool clean_slab(struct heap *heap, uint32_t slab, enum cleaning cleaning, struct heap_effort *effort) {
    bool busy;
    if (!slab_begin_cleaning(slab, cleaning, &busy)) {
        return busy;
    }
    effort->slices -= (uint32_t)bits_min(effort->slices, arena_span(slab)->slices);
    struct slab_piece piece = {0};
    size_t cleaned = 1;
    bool gone = false; /* the slab is another's then, perhaps */
    while (!gone && cleaned > 0 && is_left(effort) && slab_lift(slab, cleaning, &piece)) {
        effort->pieces--;
        cleaned = clean_piece(heap, slab, &piece);
        heap->pieces++;
        effort->bytes -= bits_min(effort->bytes, cleaned);
        bool empty = arena_span(slab)->free_blocks == arena_span(slab)->blocks;
        gone = empty && shelf_emptied(heap, arena_span(slab)->size_class, slab);
    }
    if (!gone && cleaned > 0 && !is_left(effort)) { /* the rest the next time */
        arena_span(slab)->examined = 0;
    }
    return !gone && (arena_span(slab)->taken & cleaning) != 0;
}

/* Cleans the slab at `slice`, if one is there; returns the slice behind what was looked at. */
static uint32_t clean_slab_at(uint32_t slice, enum cleaning cleaning, struct heap_effort *effort, bool *more) {
    uint32_t next = slice + 1;
    struct heap *heap = flush_owner(arena_address(slice));
    if (heap == NULL) {
        return next;
    }
    lock_take(&heap->lock);
    /* Both asked under its lock: the slab cannot go meanwhile, and a hook that has to see pages go was installed before blocks there were freed. */
    if (memory_hooks_may_call() && flush_owner(arena_address(slice)) == heap) {
        uint32_t slab = arena_span(slice)->first;
        next = slab + arena_span(slab)->slices;
        *more |= clean_slab(heap, slab, cleaning, effort);
        if (cleaning == CLEAN_ALL && !is_left(effort)) { /* its rest is the next piece */
            next = slab;
        }
        size_t returnable = heap_returnable(heap);
        /* One look for the budget is no look of the keeper's at all slabs. */
        heap->looked_at = cleaning == CLEAN_FOR_BUDGET ? bits_min(heap->looked_at, returnable) : returnable;
    }
    heap_leave_quietly(heap);
    return next;
}

/* From *slice on, 0 for the first of all, as far as the effort goes; 0 at the end. Returns the bytes. */
static size_t clean_from(uint32_t *slice, enum cleaning cleaning, struct heap_effort *effort, bool *more) {
    size_t bytes = effort->bytes;
    *slice = (uint32_t)bits_max(*slice, arena_first_slice());
    uint32_t end = (uint32_t)(__atomic_load_n(&window.extent, __ATOMIC_RELAXED) >> SLICE_BITS);
    uint32_t stop = (uint32_t)bits_min(end, (size_t)*slice + effort->visits);
    while (*slice < stop && effort->slices > 0 && is_left(effort)) {
        *slice = clean_slab_at(*slice, cleaning, effort, more);
    }
    if (*slice >= end) {
        *slice = 0;
    }
    return bytes - effort->bytes;
}

size_t heap_clean(uint32_t *slice, uint32_t slices, enum cleaning cleaning, bool *more) {
    struct heap_effort effort = {.visits = slices, .slices = UINT32_MAX, .pieces = UINT32_MAX, .bytes = SIZE_MAX};
    return clean_from(slice, cleaning, &effort, more);
}

size_t heap_clean_some(uint32_t *slice, struct heap_effort effort) {
    bool more = false; /* nobody asks */
    return clean_from(slice, CLEAN_FOR_BUDGET, &effort, &more);
}

/* -- a look round for room under a limit ---------------------------------------------------------------------- */

/* Relaxed: two threads may look at the same slabs, and one that finds nothing more may be told so late. */
static struct {
    _Atomic uint32_t hand; /* where the next look round begins */
    _Atomic size_t futile; /* frees when one ended that missed nothing, and 1 more */
} sweeps;

/* Equal only if nothing came free in between: no heap's count falls. */
static size_t all_frees(void) {
    size_t frees = 0;
    for (unsigned i = 0; i < heap_count(); i++) {
        struct heap *heap = heap_numbered(i);
        lock_take(&heap->lock);
        frees += heap->frees;
        lock_free(&heap->lock);
    }
    return frees;
}

void heap_begin_sweep(struct heap_sweep *sweep) {
    uint32_t hand = atomic_load_explicit(&sweeps.hand, memory_order_relaxed);
    uint32_t first = arena_first_slice();
    *sweep = (struct heap_sweep){.start = (uint32_t)bits_max(hand, first), .frees = all_frees()};
    sweep->at = sweep->start;
    sweep->others = atomic_load_explicit(&purged_pieces, memory_order_relaxed);
    sweep->begun =
        memory_hooks_may_call() && atomic_load_explicit(&sweeps.futile, memory_order_relaxed) != sweep->frees + 1;
}

bool heap_sweep_missed(const struct heap_sweep *sweep) {
    uint32_t purged = atomic_load_explicit(&purged_pieces, memory_order_relaxed) - sweep->others;
    return heap_is_cleaning() || (sweep->begun && (purged != sweep->pieces || all_frees() != sweep->frees));
}

bool heap_sweep_some(struct heap_sweep *sweep, size_t bytes) {
    enum { PIECE_SLICES = 64, PIECE_PURGES = 64 };
    if (!sweep->begun) {
        return false;
    }
    bool more = false, again = sweep->wrapped; /* more: nobody asks */
    uint32_t stop = again ? sweep->start : UINT32_MAX;
    uint32_t slices = (uint32_t)bits_min(PIECE_SLICES, stop - bits_min(stop, sweep->at));
    struct heap_effort effort = {.visits = slices, .slices = UINT32_MAX, .pieces = PIECE_PURGES, .bytes = bytes};
    sweep->bytes += clean_from(&sweep->at, CLEAN_ALL, &effort, &more);
    sweep->pieces += PIECE_PURGES - effort.pieces;
    sweep->wrapped |= sweep->at == 0;
    atomic_store_explicit(&sweeps.hand, sweep->at, memory_order_relaxed);
    bool over = sweep->wrapped && bits_max(sweep->at, arena_first_slice()) >= sweep->start;
    over |= again && sweep->at == 0; /* the street has become shorter */
    if (over && !heap_sweep_missed(sweep)) {
        atomic_store_explicit(&sweeps.futile, sweep->frees + 1, memory_order_relaxed);
    }
    return !over;
}

/* -- near the control group's limit ---------------------------------------------------------------------------- */

/* Of one heap after the other, in turn. */
static void drain_next(void) {
    static _Atomic unsigned turn; /* relaxed: two threads may drain the same */
    drain_all(heap_numbered(atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed) % heap_count()));
}

/* A group refuses nothing: there is no end of memory at which to look for free pages thoroughly, so who takes more looks, in proportion to that.
 * Pieces in which hardly a page is free end the look. Until an eighth of the limit, which is left to others, is taken, all slabs of a heap of that
 * size have been seen all the same. */
OUT_OF_LINE void arena_reclaim(size_t bytes) {
    enum { FRUITLESS_MOST = 2, FRUITLESS_FOR = 1 << 20 }; /* pieces of 4 MiB, for each so many bytes */
    size_t fruitless = bytes / FRUITLESS_FOR * FRUITLESS_MOST;
    struct heap_sweep sweep;
    heap_begin_sweep(&sweep);
    bool more = true;
    while (more && sweep.bytes < bytes && fruitless > 0 && !gate_is_awaited()) {
        size_t before = sweep.bytes;
        more = heap_sweep_some(&sweep, bytes - before);
        fruitless -= sweep.bytes - before < SLICE_BYTES;
    }
    if ((!more || sweep.wrapped) && sweep.bytes < bytes &&
        !gate_is_awaited()) { /* the next look finds what depots hold */
        drain_next();
    }
}

bool heap_has_new(void) {
    bool any = false;
    for (unsigned i = 0; i < heap_count(); i++) {
        struct heap *heap = heap_numbered(i);
        lock_take(&heap->lock);
        any |= heap_returnable(heap) > heap->looked_at;
        lock_free(&heap->lock);
    }
    return any;
}

size_t heap_reused(void) {
    size_t bytes = 0;
    for (unsigned i = 0; i < heap_count(); i++) {
        struct heap *heap = heap_numbered(i);
        lock_take(&heap->lock);
        bytes += heap->reused_bytes;
        lock_free(&heap->lock);
    }
    return bytes;
}

/* -- all of it ----------------------------------------------------------------------------------------------- */

bool heap_drain_unneeded(void) {
    bool any = false;
    for (unsigned i = 0; i < heap_count(); i++) {
        struct heap *heap = heap_numbered(i);
        lock_take(&heap->lock);
        any |= heap->depot_bytes > 0;
        depot_mark_unneeded(heap);
        lock_free(&heap->lock);
        drain(heap);
    }
    return any;
}

/* One piece of returning a heap's spare magazines. */
static bool give_up_some(struct heap *heap) {
    lock_take(&heap->lock);
    union magazine *list = depot_give_up_spare(heap, PIECE_SPARE);
    lock_free(&heap->lock);
    magazine_pool_give(list);
    return list != NULL;
}

size_t heap_purge_magazines(bool all, bool (*goes_on)(void), bool *more) {
    for (unsigned i = 0; i < heap_count(); i++) {
        struct heap *heap = heap_numbered(i);
        lock_take(&heap->lock);
        *more |= depot_mark_spare(heap, all);
        lock_free(&heap->lock);
        while (goes_on() && give_up_some(heap)) {
        }
    }
    size_t bytes = 0;
    while (goes_on() && magazine_pool_purge(&bytes)) {
    }
    return bytes;
}

bool heap_reclaim_piece(unsigned *step) {
    unsigned heaps = heap_count();
    struct heap *heap = heap_numbered(*step % heaps);
    if (*step < heaps) { /* first all depots, whose blocks may be any heap's */
        drain_all(heap);
    } else {
        release_empty(heap);
    }
    ++*step;
    return *step < 2 * heaps;
}

void heap_reclaim(void) {
    unsigned step = 0;
    while (heap_reclaim_piece(&step)) {
    }
}

/* A block of the class from the heap's slabs, as they are. */
static void *take_there(struct heap *heap, unsigned class) {
    void *block = NULL;
    bool all = false;
    size_t slabs, looked = 0;
    do {
        lock_take(&heap->lock);
        slabs = heap->shelf[class].blocks / class_blocks(class);
        (void)shelf_take_charged(heap, class, &block + 1, 1, &all);
        heap_leave_quietly(heap);
        looked += SHELF_LOOK;
    } while (block == NULL && !all && looked < slabs);
    return block;
}

/* A block of at least the class from a run of free ones of the heap's smaller classes. Comes back early if a
 * fork waits for those who are inside. */
static void *lend_there(struct heap *heap, unsigned class, size_t alignment) {
    void *block = NULL;
    struct last_look look = {false, false};
    while (block == NULL && !look.over && !gate_is_awaited()) {
        lock_take(&heap->lock);
        block = lend_last(heap, class, alignment, &look);
        heap_leave_quietly(heap);
    }
    return block;
}

void *heap_take_anywhere(unsigned class, size_t alignment) {
    void *block = NULL;
    for (unsigned larger = class; block == NULL && larger < CLASS_COUNT; larger++) {
        for (unsigned i = 0; block == NULL && class_bytes[larger] % alignment == 0 && i < heap_count(); i++) {
            block = take_there(heap_numbered(i), larger);
        }
        for (unsigned i = 0; block == NULL && larger == class && i < heap_count(); i++) {
            block = lend_there(heap_numbered(i), class, alignment);
        }
    }
    return block;
}
