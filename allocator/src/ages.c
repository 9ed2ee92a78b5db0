#include "ages.h"

#include <stdatomic.h>

#include "os.h"

/* What is atomic is so because whether there is anything to purge is asked without the lock. Relaxed: a stale answer only
 * delays a purge. */
static struct {
    _Atomic uint32_t oldest;
    uint32_t youngest;
    _Atomic uint32_t slices;
    _Atomic uint32_t purged; /* pages of them that the kernel has back */
    _Atomic uint64_t stamp; /* of the oldest */
} ages;

static void note_oldest(void) {
    uint32_t oldest = ages_oldest();
    if (oldest != 0) {
        atomic_store_explicit(&ages.stamp, arena_span(oldest)->stamp, memory_order_relaxed);
    }
}

static void set_oldest(uint32_t slice) { atomic_store_explicit(&ages.oldest, slice, memory_order_relaxed); }

void ages_append(uint32_t slice) {
    struct span *span = arena_span(slice);
    span->age_next = 0;
    span->age_prev = ages.youngest;
    if (ages.youngest != 0) {
        arena_span(ages.youngest)->age_next = slice;
    } else {
        set_oldest(slice);
    }
    ages.youngest = slice;
    atomic_fetch_add_explicit(&ages.slices, span->slices, memory_order_relaxed);
    atomic_fetch_add_explicit(&ages.purged, span->purged, memory_order_relaxed);
    note_oldest();
}

void ages_remove(uint32_t slice) {
    struct span *span = arena_span(slice);
    if (span->age_next != 0) {
        arena_span(span->age_next)->age_prev = span->age_prev;
    } else {
        ages.youngest = span->age_prev;
    }
    if (span->age_prev != 0) {
        arena_span(span->age_prev)->age_next = span->age_next;
    } else {
        set_oldest(span->age_next);
    }
    atomic_fetch_sub_explicit(&ages.slices, span->slices, memory_order_relaxed);
    atomic_fetch_sub_explicit(&ages.purged, span->purged, memory_order_relaxed);
    note_oldest();
}

void ages_replace(uint32_t slice, uint32_t rest, uint32_t less, uint32_t purged) {
    struct span *old = arena_span(slice);
    struct span *new = arena_span(rest);
    new->stamp = old->stamp;
    new->age_next = old->age_next;
    new->age_prev = old->age_prev;
    if (new->age_next != 0) {
        arena_span(new->age_next)->age_prev = rest;
    } else {
        ages.youngest = rest;
    }
    if (new->age_prev != 0) {
        arena_span(new->age_prev)->age_next = rest;
    } else {
        set_oldest(rest);
    }
    atomic_fetch_sub_explicit(&ages.slices, less, memory_order_relaxed);
    atomic_fetch_sub_explicit(&ages.purged, purged, memory_order_relaxed);
}

uint32_t ages_oldest(void) { return atomic_load_explicit(&ages.oldest, memory_order_relaxed); }

uint32_t ages_slices(void) { return atomic_load_explicit(&ages.slices, memory_order_relaxed); }

size_t ages_bytes(void) {
    size_t bytes = (size_t)ages_slices() << SLICE_BITS;
    size_t purged = atomic_load_explicit(&ages.purged, memory_order_relaxed) * os_page_bytes();
    return bytes - bits_min(bytes, purged); /* without the lock they may be of two moments */
}

uint64_t ages_oldest_stamp(void) { return atomic_load_explicit(&ages.stamp, memory_order_relaxed); }
