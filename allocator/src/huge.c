#include "huge.h"

#include "options.h"
#include "os.h"
#include "patience.h"
#include "spans.h"
#include "street.h"

enum {
    HUGE_SHARE = 8,            /* huge pages are asked for ahead for this share of what is in use, */
    HUGE_AHEAD = 1024,         /* up to 64 MiB */
    HUGE_SLOW_NS = 800000,     /* a huge page that takes longer is dearer than 512 small ones (1.5 us each) */
    HUGE_REST_MS = 1000,       /* for how long there are none then; twice as long each time, */
    HUGE_REST_MOST_MS = 64000, /* up to this */
    EDGES_MOST =
        2000, /* neighbours that are not advised alike: a mapping each, a thirtieth of what a process may have */
};

static struct {
    uint32_t edges;
    uint32_t rest; /* HUGE_REST_MS and so on, 0 before the first slow huge page */
    uint64_t rest_over; /* os_milliseconds: no huge pages are asked for before it */
} huge;

uint32_t huge_chunk(uint32_t slice) {
    uintptr_t base = window.base >> SLICE_BITS;
    return (uint32_t)(((base + slice) & ~(uintptr_t)(CHUNK_SLICES - 1)) - base);
}

/* Chunks that begin with a slice to be handed out, as far as there are descriptors. */
static bool has_advice(uint32_t chunk) { return chunk >= street_first() && chunk < street_described(); }

static enum advice advice_of(uint32_t chunk) {
    return has_advice(chunk) ? (enum advice)arena_span(chunk)->advice : ADVICE_NONE;
}

/* Edges at which a chunk differs from the one before it, from `first` to `end` included. */
static uint32_t edges_in(uint32_t first, uint32_t end) {
    uint32_t edges = 0;
    for (uint32_t chunk = first; (int32_t)(end - chunk) >= 0; chunk += CHUNK_SLICES) {
        edges += advice_of(chunk) != advice_of(chunk - CHUNK_SLICES);
    }
    return edges;
}

static void advise(uint32_t first, uint32_t end, enum advice advice) {
    for (uint32_t chunk = first; (int32_t)(end - chunk) > 0; chunk += CHUNK_SLICES) {
        if (has_advice(chunk)) {
            arena_span(chunk)->advice = (uint8_t)advice;
        }
    }
}

/* Marks the chunks of [first, end). There is nothing to tell when that would be an edge too many. */
static struct huge_request mark(uint32_t first, uint32_t end, enum advice advice) {
    struct huge_request none = {0, 0, advice};
    if ((int32_t)(end - first) <= 0) {
        return none;
    }
    uint32_t before = edges_in(first, end);
    uint32_t after = (uint32_t)(advice_of(first - CHUNK_SLICES) != advice) + (uint32_t)(advice_of(end) != advice);
    if (after > before && huge.edges + (after - before) > EDGES_MOST) {
        return none;
    }
    huge.edges += after - before;
    advise(first, end, advice);
    return (struct huge_request){first, end - first, advice};
}

void huge_tell(struct huge_request request) {
    if (request.slices == 0) {
        return;
    }
    void *at = arena_address(request.slice);
    size_t bytes = (size_t)request.slices << SLICE_BITS;
    if (request.advice == ADVICE_HUGE) {
        os_prefer_huge(at, bytes);
    } else {
        os_avoid_huge(at, bytes);
    }
}

bool huge_is_wanted(uint32_t slices) {
    uint32_t from = option_value(OPTION_HUGE_FROM_MIB);
    if (huge.rest != 0 && stamp_is_ahead(huge.rest_over, os_milliseconds(), HUGE_REST_MOST_MS)) {
        return false;
    }
    return from != HUGE_NEVER && (slices >= HUGE_OBJECT || spans_used() >= from << (20 - SLICE_BITS));
}

struct huge_request huge_ask(uint32_t slice, uint32_t slices, uint32_t usable) {
    uint32_t first = spans_align(slice, CHUNK_SLICES);
    uint32_t end = spans_align(slice + slices, CHUNK_SLICES);
    if (end > usable) {
        end = huge_chunk(usable); /* the last chunk is not usable to its end */
    }
    return mark(first, end, ADVICE_HUGE);
}

bool huge_is_huge(uint32_t chunk) { return advice_of(chunk) == ADVICE_HUGE; }

struct huge_request huge_make_plain(uint32_t slice, uint32_t end) {
    uint32_t first = huge_chunk(slice);
    uint32_t behind = huge_chunk(end - 1) + CHUNK_SLICES;
    while (first != behind && !huge_is_huge(first)) {
        first += CHUNK_SLICES;
    }
    while (first != behind && !huge_is_huge(behind - CHUNK_SLICES)) {
        behind -= CHUNK_SLICES;
    }
    return mark(first, behind, ADVICE_PLAIN);
}

struct huge_request huge_keep_small(uint32_t chunk) {
    bool unadvised = advice_of(chunk) == ADVICE_NONE; /* where others share it, they have asked */
    return unadvised ? mark(chunk, chunk + CHUNK_SLICES, ADVICE_PLAIN) : (struct huge_request){0, 0, ADVICE_NONE};
}

void huge_forget(uint32_t slice, uint32_t end) {
    (void)mark(spans_align(slice, CHUNK_SLICES), huge_chunk(end - 1) + CHUNK_SLICES, ADVICE_NONE);
}

bool huge_is_slow(void *chunk) {
    uint64_t before = os_nanoseconds();
    *(volatile char *)chunk = 0;
    return os_nanoseconds() - before > HUGE_SLOW_NS;
}

void huge_rest(void) {
    huge.rest = (uint32_t)bits_min(bits_max(2 * (size_t)huge.rest, HUGE_REST_MS), HUGE_REST_MOST_MS);
    huge.rest_over = os_milliseconds() + huge.rest;
}

uint32_t huge_ahead(void) { return (uint32_t)bits_min(spans_used() / HUGE_SHARE, HUGE_AHEAD); }
