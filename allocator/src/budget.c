/* A budget for free memory inside slabs. A block of one size class cannot use the free pages in slabs of another: without a bound a program
 * whose sizes change holds the free pages of each.
 *
 * Each heap publishes its returnable bytes in steps. When a heap has taken fresh memory and the total exceeds the budget, the thread purges
 * free pages of slabs, of any heap, from a hand that goes round over all slabs. One call purges a few times the bytes that came, and its
 * work is bounded. Pages that a block in use pins yield nothing: while the yield is low, a call looks at fewer slabs. */
#include "heap_inside.h"
#include "limit.h"
#include "options.h"
#include "spans.h"

enum {
    BASE_PART = 16, /* the budget is this part of retain_mib, which is for spans, */
    SHARE_PART = 4, /* and this part of retain_percent: 8 MiB and an eighth of what is used, by default */
    MISSED_BASE_PART = 2, /* likewise: 64 MiB and a quarter. More than that no purging returns: blocks in use pin it */
    MISSED_SHARE_PART = 2,
    CAUGHT_UP = 4, /* bytes purged at most for each byte that came */
    BYTES_MOST = 1024 * 1024, /* in one call, but for the last piece */
    PIECES_MOST = 24, /* in one call: one or two system calls each */
    SLICES_LEAST = 16, /* of slabs whose bitmaps are read, while the yield is low, */
    SLICES_MOST = 64, /* and while it is high */
    VISITS = 4, /* slices passed for each of those: slabs that have not changed */
};

static struct {
    _Atomic size_t
        returnable; /* bytes, of all heaps. Relaxed: nothing else is read by it, and a stale total is corrected by the next look */
    /* A thread purges for the budget; others go on. Acquire and release: it protects what follows */
    _Atomic bool busy;
    uint32_t hand; /* slice at which the next call begins */
    uint32_t slices; /* looked at in one call */
} budget = {.slices = SLICES_MOST};

OUT_OF_LINE void budget_publish_step(struct heap *heap, size_t returnable) {
    atomic_fetch_add_explicit(&budget.returnable, returnable - heap->published, memory_order_relaxed);
    heap->published = returnable;
}

size_t budget_returnable(void) { return atomic_load_explicit(&budget.returnable, memory_order_relaxed); }

/* A part of retain_mib, and one of what retain_percent is of what is used. Near a limit at most half of the room. */
static bool exceeds(size_t base_part, size_t share_part) {
    size_t returnable = budget_returnable();
    size_t used = (size_t)spans_used() << SLICE_BITS;
    size_t base = ((size_t)option_value(OPTION_RETAIN_MIB) << 20) / base_part;
    size_t chosen = base + (used - bits_min(used, returnable)) / 100 * option_value(OPTION_RETAIN_PERCENT) / share_part;
    return returnable > bits_min(chosen, limit_room() / 2) && option_value(OPTION_RETAIN_MIB) != RETAIN_ALL_MIB &&
           option_value(OPTION_RETAIN_MS) != RETAIN_FOR_EVER;
}

bool budget_is_missed(void) { return exceeds(MISSED_BASE_PART, MISSED_SHARE_PART); }

static void adapt(size_t purged, size_t came) {
    if (purged >= came) {
        budget.slices = (uint32_t)bits_min(2 * (size_t)budget.slices, SLICES_MOST);
    } else if (purged < came / 2) {
        budget.slices = (uint32_t)bits_max(budget.slices / 2, SLICES_LEAST);
    }
}

void budget_keep(size_t came) {
    if (likely(!exceeds(BASE_PART, SHARE_PART)) || atomic_exchange_explicit(&budget.busy, true, memory_order_acquire)) {
        return;
    }
    struct heap_effort effort = {.visits = VISITS * budget.slices,
                                 .slices = budget.slices,
                                 .pieces = PIECES_MOST,
                                 .bytes = bits_min(CAUGHT_UP * came, BYTES_MOST)};
    adapt(heap_clean_some(&budget.hand, effort), came);
    atomic_store_explicit(&budget.busy, false, memory_order_release);
}

void budget_after_fork(void) {
    /* relaxed: the only thread. The heaps' shares, and so their total, are as they were */
    atomic_store_explicit(&budget.busy, false, memory_order_relaxed);
}
