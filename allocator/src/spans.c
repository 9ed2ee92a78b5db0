#include "spans.h"

#include <stdatomic.h>

#include "ages.h"
#include "bins.h"
#include "limit.h"
#include "os.h"
#include "street.h"

/* `used` is an atomic because budgets are worked out without the lock. Relaxed: a stale answer only delays a purge. */
static struct {
    uint32_t front, farthest;
    _Atomic uint32_t used;
} spans;

/* What `slices` slices of a state hold, of which the kernel has `purged` pages back (limit.h). Who purges them counts them as gone. */
static INLINE_ALWAYS size_t held_by(enum span_state state, uint32_t slices, uint32_t purged) {
    bool held = state == SPAN_USED || state == SPAN_DIRTY || state == SPAN_KEPT;
    return held ? ((size_t)slices << SLICE_BITS) - purged * os_page_bytes() : 0;
}

static void count_used(uint32_t more) { atomic_fetch_add_explicit(&spans.used, more, memory_order_relaxed); }

uint32_t spans_front(void) { return spans.front; }

uint32_t spans_farthest(void) { return spans.farthest; }

uint32_t spans_used(void) { return atomic_load_explicit(&spans.used, memory_order_relaxed); }

uint32_t spans_align(uint32_t slice, uint32_t alignment) {
    uintptr_t base = window.base >> SLICE_BITS;
    return (uint32_t)(bits_round_up(base + slice, alignment) - base);
}

static void describe(uint32_t slice, uint32_t slices, enum span_state state) {
    struct span *span = arena_span(slice);
    span->slices = slices;
    span->state = (uint8_t)state;
    span->first = slice;
    arena_span(slice + slices - 1)->first = slice;
}

static void move_front(uint32_t front) {
    spans.front = front;
    spans.farthest = (uint32_t)bits_max(spans.farthest, front);
    /* relaxed: see tag_of */
    __atomic_store_n(&window.extent, (size_t)front << SLICE_BITS, __ATOMIC_RELAXED);
}

void spans_open(void) { spans.front = street_first(); }

/* -- joining ------------------------------------------------------------------------------------------------- */

/* The free span of kind `state` that ends right before `slice`, or 0. */
static uint32_t left_neighbour(uint32_t slice, enum span_state state) {
    if (slice == street_first()) {
        return 0;
    }
    uint32_t first = arena_span(slice - 1)->first;
    return arena_span(first)->state == state ? first : 0;
}

static uint32_t right_neighbour(uint32_t slice, uint32_t slices, enum span_state state) {
    uint32_t next = slice + slices;
    return next < spans.front && arena_span(next)->state == state ? next : 0;
}

/* A free span is none any more: its neighbour takes it in. Returns its slices. */
static uint32_t dissolve(uint32_t slice) {
    bins_remove(slice);
    if (arena_span(slice)->state == SPAN_DIRTY) {
        ages_remove(slice);
    }
    arena_span(slice)->state = SPAN_UNUSED;
    return arena_span(slice)->slices;
}

static void make_free(uint32_t slice, uint32_t slices, enum span_state state, uint32_t purged) {
    uint32_t left = left_neighbour(slice, state);
    uint32_t right = right_neighbour(slice, slices, state);
    arena_span(slice)->state = SPAN_UNUSED;
    if (right != 0) {
        purged += arena_span(right)->purged;
        slices += dissolve(right);
    }
    if (left != 0) {
        purged += arena_span(left)->purged;
        slices += dissolve(left);
        slice = left;
    }
    describe(slice, slices, state);
    arena_span(slice)->purged = purged;
    bins_insert(slice);
    if (state == SPAN_DIRTY) {
        arena_span(slice)->stamp = os_milliseconds();
        ages_append(slice);
    }
}

void spans_give_uncharged(uint32_t slice, uint32_t slices, enum span_state state, uint32_t purged) {
    count_used(-slices);
    make_free(slice, slices, state, purged);
}

void spans_let_go(uint32_t slice, uint32_t slices, enum span_state state) {
    struct span *span = arena_span(slice);
    uint32_t rest = span->slices - slices;
    if (rest != 0) {
        describe(slice + slices, rest, SPAN_PURGING);
    }
    limit_charge(held_by(state, slices, 0));
    make_free(slice, slices, state, 0);
}

/* -- splitting ----------------------------------------------------------------------------------------------- */

uint32_t spans_forget_purged(uint32_t slice, uint32_t slices) {
    uint32_t purged = 0;
    for (uint32_t end = slice + slices; slice < end; slice++) {
        struct span *span = arena_span(slice);
        if (span->clean != 0) { /* else it may never have been written */
            purged += (uint32_t)__builtin_popcount(span->clean);
            span->clean = 0;
        }
    }
    return purged;
}

/* The first `slices` of a free span are so no longer; what is left stays free, of the same kind and age. Returns how many of their pages
 * the kernel had back already, which nobody knows from now on. */
static uint32_t split_off(uint32_t slice, uint32_t slices, enum span_state become) {
    struct span *span = arena_span(slice);
    enum span_state state = span->state;
    uint32_t rest = span->slices - slices;
    uint32_t purged = span->purged == 0 ? 0 : spans_forget_purged(slice, slices);
    bins_remove(slice);
    if (state == SPAN_DIRTY && rest != 0) {
        ages_replace(slice, slice + slices, slices, purged);
    } else if (state == SPAN_DIRTY) {
        ages_remove(slice);
    }
    if (rest != 0) {
        describe(slice + slices, rest, state);
        arena_span(slice + slices)->purged = span->purged - purged;
        bins_insert(slice + slices);
    }
    describe(slice, slices, become);
    return purged;
}

uint32_t spans_hold(uint32_t slice, uint32_t slices) {
    enum span_state state = arena_span(slice)->state;
    uint32_t purged = split_off(slice, slices, SPAN_PURGING);
    limit_release(held_by(state, slices, purged));
    return purged;
}

bool spans_revive(void) {
    uint32_t slice = bins_any(SPAN_KEPT);
    if (slice == 0) {
        return false;
    }
    uint32_t slices = arena_span(slice)->slices;
    (void)split_off(slice, slices, SPAN_PURGING);
    make_free(slice, slices, SPAN_DIRTY, 0);
    return true;
}

bool spans_doubt(void) {
    uint32_t slice = bins_any(SPAN_CLEAN), pages = (uint32_t)(SLICE_BYTES / os_page_bytes());
    if (slice == 0) {
        return false;
    }
    uint32_t slices = arena_span(slice)->slices;
    (void)split_off(slice, slices, SPAN_PURGING);
    for (uint32_t i = 0; i < slices; i++) {
        arena_span(slice + i)->clean = (uint32_t)((1ULL << pages) - 1);
    }
    make_free(slice, slices, SPAN_DIRTY, slices * pages);
    return true;
}

void spans_hold_used(uint32_t slice) {
    count_used(-arena_span(slice)->slices);
    arena_span(slice)->state = SPAN_PURGING;
}

void spans_cut(uint32_t slice, uint32_t slices) { describe(slice, slices, SPAN_USED); }

uint32_t spans_take(enum span_state state, uint32_t slices, uint32_t alignment) {
    uint32_t slice = alignment == 1 ? bins_find(state, slices)
                                    : bins_find_aligned(state, slices, alignment, window.base >> SLICE_BITS);
    if (slice == 0) {
        return 0;
    }
    uint32_t fit = spans_align(slice, alignment);
    uint32_t head = fit - slice;
    uint32_t whole = arena_span(slice)->slices;
    size_t purged = arena_span(slice)->purged * os_page_bytes(); /* of which any may be used from now on */
    if (unlikely(purged > 0) && !limit_take(purged)) {
        return 0;
    }
    if (head == 0) {
        uint32_t again = split_off(slice, slices, SPAN_USED);
        if (unlikely(purged > 0)) {
            limit_release(purged - again * os_page_bytes());
        }
        count_used(slices);
        return slice;
    }
    /* Only for alignments above a slice: use all, then give both ends back. Which of their pages were purged is forgotten. */
    (void)split_off(slice, whole, SPAN_USED);
    count_used(whole);
    describe(fit, slices, SPAN_USED);
    spans_give_uncharged(slice, head, state, 0);
    if (whole > head + slices) {
        spans_give_uncharged(fit + slices, whole - head - slices, state, 0);
    }
    return fit;
}

/* -- the front ----------------------------------------------------------------------------------------------- */

uint32_t spans_take_front(uint32_t slices, uint32_t alignment, uint32_t usable, uint32_t *end) {
    uint32_t gap_at = spans.front;
    uint32_t slice = spans_align(gap_at, alignment);
    if (slice < gap_at || slices > street_limit() || slice > street_limit() - slices) {
        *end = UINT32_MAX;
        return 0;
    }
    *end = slice + slices;
    if (*end > usable) {
        return 0;
    }
    move_front(*end);
    describe(slice, slices, SPAN_USED);
    count_used(slices);
    if (slice != gap_at) {
        make_free(gap_at, slice - gap_at, SPAN_CLEAN, 0);
    }
    return slice;
}

void spans_skip(uint32_t usable, uint32_t front) {
    uint32_t gap_at = spans.front;
    move_front(front);
    describe(usable, front - usable, SPAN_USED); /* and counted nowhere */
    if (usable != gap_at) {
        make_free(gap_at, usable - gap_at, SPAN_CLEAN, 0);
    }
}

uint32_t spans_clean_end(unsigned most, bool kept) {
    uint32_t end = spans.front;
    for (; most > 0 && end != street_first(); most--) {
        uint32_t before = arena_span(end - 1)->first;
        enum span_state state = arena_span(before)->state;
        if (state != SPAN_CLEAN && state != SPAN_HUGE && !(kept && state == SPAN_KEPT)) {
            break;
        }
        end = before;
    }
    return end;
}

bool spans_retreat(bool kept) {
    uint32_t last = spans_clean_end(1, kept);
    if (last == spans.front) {
        return false;
    }
    enum span_state state = arena_span(last)->state;
    limit_release(held_by(state, dissolve(last), 0));
    move_front(last);
    return true;
}

static bool is_free(uint32_t slice) {
    enum span_state state = arena_span(slice)->state;
    return state == SPAN_DIRTY || state == SPAN_CLEAN || state == SPAN_HUGE || state == SPAN_KEPT;
}

uint32_t spans_end_of_free(uint32_t slice) {
    return slice < spans.front && is_free(slice) ? slice + arena_span(slice)->slices : slice;
}

bool spans_extend(uint32_t slice, uint32_t more, uint32_t usable) {
    uint32_t had = arena_span(slice)->slices;
    uint32_t next = slice + had;
    uint32_t end = next + more;
    uint32_t free_there = spans_end_of_free(next) - next;
    if (free_there < more && (next + free_there != spans.front || end < next || end > usable)) {
        return false;
    }
    if (free_there > 0) {
        uint32_t taken = (uint32_t)bits_min(free_there, more);
        enum span_state state = arena_span(next)->state;
        limit_release(held_by(state, taken, split_off(next, taken, SPAN_USED)));
        arena_span(next)->state = SPAN_UNUSED;
    }
    if (free_there < more) {
        move_front(end);
    }
    count_used(more);
    describe(slice, had + more, SPAN_USED);
    return true;
}
