/* A walk along the whole arena that holds every span's descriptor to the invariants written in arena.c, the free
 * lists and the age queue included, and the arena's figures to what the walk has counted. No other thread may use
 * the arena meanwhile. */
#ifndef FREESTONE_UNIT_STREET_H
#define FREESTONE_UNIT_STREET_H

#include "arena.h"
#include "expect.h"
#include "os.h"

static inline uint32_t street_end(void) { return (uint32_t)(window.extent >> SLICE_BITS); }

static inline uint32_t street_start(void) {
    struct arena_figures figures;
    arena_figures(&figures);
    return window.extent == 0 ? 0 : street_end() - (uint32_t)(figures.extent >> SLICE_BITS);
}

static inline bool street_is_free(uint32_t slice) {
    enum span_state state = (enum span_state)arena_span(slice)->state;
    return state >= SPAN_DIRTY && state <= SPAN_UNMAPPED;
}

static inline uint32_t street_tag(uint32_t slice) { return ((const uint32_t *)window.base)[slice]; }

static inline void street_check_links(uint32_t slice) {
    const struct span *span = arena_span(slice);
    EXPECT(span->next == 0 || (arena_span(span->next)->prev == slice && arena_span(span->next)->state == span->state),
           "span %u: %u follows it in its free list, but does not point back", slice, span->next);
    EXPECT(span->prev == 0 || (arena_span(span->prev)->next == slice && arena_span(span->prev)->state == span->state),
           "span %u: %u precedes it in its free list, but does not point on", slice, span->prev);
    /* Up to 64 slices there is a list for each length. */
    EXPECT(span->next == 0 || span->slices > 64 || arena_span(span->next)->slices == span->slices,
           "span %u of %u slices shares a list with one of %u", slice, span->slices, arena_span(span->next)->slices);
}

/* The queue from the oldest dirty span holds each of them once, oldest first. */
static inline void street_check_ages(uint32_t oldest, uint32_t spans) {
    uint32_t seen = 0, before = 0;
    for (uint32_t at = oldest; at != 0; before = at, at = arena_span(at)->age_next) {
        EXPECT(arena_span(at)->state == SPAN_DIRTY, "span %u is in the age queue in state %u", at,
               arena_span(at)->state);
        EXPECT(arena_span(at)->age_prev == before, "span %u: the age queue is broken before it", at);
        EXPECT(before == 0 || arena_span(at)->stamp >= arena_span(before)->stamp,
               "span %u is older than %u and behind it", at, before);
        EXPECT(++seen <= spans, "the age queue runs in a circle");
    }
    EXPECT(seen == spans, "%u of %u dirty spans are in the age queue", seen, spans);
}

/* What a free span knows of its pages, and what a used one that is no slab must not. */
static inline void street_check_purged(uint32_t slice) {
    const struct span *span = arena_span(slice);
    uint32_t purged = 0;
    for (uint32_t at = slice; at < slice + span->slices; at++) {
        purged += (uint32_t)__builtin_popcount(arena_span(at)->clean);
    }
    EXPECT(purged == (span->state == SPAN_USED ? 0 : span->purged), "span %u: %u pages are purged, %u counted", slice,
           purged, span->purged);
    EXPECT(span->state == SPAN_DIRTY || purged == 0, "span %u in state %u has %u purged pages", slice, span->state,
           purged);
}

static inline void street_check_inside(uint32_t slice) {
    const struct span *span = arena_span(slice);
    if (!tag_is_slab(street_tag(slice))) {
        street_check_purged(slice);
    }
    for (uint32_t at = slice + 1; at < slice + span->slices; at++) {
        EXPECT(arena_span(at)->state == SPAN_UNUSED, "slice %u inside span %u has state %u", at, slice,
               arena_span(at)->state);
    }
    for (uint32_t at = slice; span->state != SPAN_USED && at < slice + span->slices; at++) {
        EXPECT(street_tag(at) == TAG_NONE, "slice %u of the free span %u is tagged %#x", at, slice, street_tag(at));
    }
}

/* `inside` also looks at every slice, which takes longer. */
static inline void street_check(bool inside) {
    struct arena_figures figures;
    arena_figures(&figures);
    size_t used = 0, dirty = 0;
    uint32_t dirty_spans = 0, oldest = 0, oldests = 0;
    uint32_t end = street_end(), slice = street_start();
    enum span_state before = SPAN_USED;
    while (slice < end) {
        const struct span *span = arena_span(slice);
        enum span_state state = (enum span_state)span->state;
        EXPECT(state == SPAN_USED || street_is_free(slice), "span %u has state %u", slice, state);
        EXPECT(span->slices > 0 && span->slices <= end - slice, "span %u has %u slices", slice, span->slices);
        EXPECT(arena_span(slice + span->slices - 1)->first == slice, "the last slice of span %u names %u", slice,
               arena_span(slice + span->slices - 1)->first);
        EXPECT(state == SPAN_USED || state != before, "span %u and the one before it are both free in state %u", slice,
               state);
        used += state == SPAN_USED ? (size_t)span->slices << SLICE_BITS : 0;
        if (street_is_free(slice)) {
            street_check_links(slice);
        }
        dirty += state == SPAN_KEPT ? (size_t)span->slices << SLICE_BITS : 0;
        if (state == SPAN_DIRTY) {
            dirty += ((size_t)span->slices << SLICE_BITS) - span->purged * os_page_bytes();
            dirty_spans++;
            if (span->age_prev == 0) {
                oldest = slice;
                oldests++;
            }
        }
        if (inside) {
            street_check_inside(slice);
        }
        before = state;
        slice += span->slices;
    }
    EXPECT(slice == end, "the spans end at slice %u, the street at %u", slice, end);
    EXPECT(used == figures.used, "%zu bytes are used, the figures say %zu", used, figures.used);
    EXPECT(dirty == figures.dirty, "%zu bytes are dirty, the figures say %zu", dirty, figures.dirty);
    EXPECT(oldests == (dirty_spans > 0), "%u dirty spans have nothing older", oldests);
    street_check_ages(oldest, dirty_spans);
}

#endif
