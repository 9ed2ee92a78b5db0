#include "huge.h"

#include <stdatomic.h>

#include "arena.h"
#include "options.h"
#include "os.h"
#include "patience.h"
#include "spans.h"
#include "street.h"

enum {
    HUGE_SHARE = 8,            /* huge pages are asked for ahead for this share of what is in use, */
    HUGE_AHEAD = 1024,         /* up to 64 MiB */
    HUGE_REST_MS = 1000,       /* for how long there are none then; twice as long each time, */
    HUGE_REST_MOST_MS = 64000, /* up to this */
    EDGES_MOST =
        2000, /* neighbours that are not advised alike: a mapping each, a thirtieth of what a process may have */
};

enum {
    PIECES_MOST = 16, /* looked at, of OS_PRESENT_MOST pages each, spread over a block: all of one of 32 MiB */
    HOLES_SHARE = 64, /* a block is dense if at most this share of the pages looked at was not written */
    GRANTED_BLOCKS = 8, /* blocks that have huge pages for one that was seen to be dense, */
    GRANTED_SLABS = 32,
    GRANTED_MOST = 64, /* and for several */
    WARY_LEAST = 15, /* dense ones in a row until a use is trusted again that was sparse once, */
    WARY_MOST = 63, /* and often; after as many more the last time is forgiven */
    UNWRITTEN_LEAST = 16, /* slices at a block's end that are worth a system call: a mebibyte */
    LOOK_AFTER = 2, /* slabs: caches may keep some blocks of the last one unwritten */
};

/* Of each use. */
static struct {
    uint32_t credit; /* slices */
    uint32_t slab; /* that is watched, or 0 */
    uint8_t wary; /* dense ones in a row that it takes after a sparse one; grows with each */
    uint8_t lacking; /* of them */
    uint8_t calm; /* dense ones since none was lacking */
    uint8_t slabs; /* made since that one */
    uint8_t unwritten; /* HUGE_ENDS-ths, at the end of the last block that was looked at */
} history[ARENA_USES];

static struct {
    uint32_t edges;
    uint32_t rest; /* HUGE_REST_MS and so on, 0 before the first slow huge page */
    uint64_t rest_over; /* os_milliseconds: no huge pages are asked for before it */
    _Atomic bool
        quick; /* one came, and quickly, since the last slow one. Relaxed: a stale answer costs one look, or some faults */
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

/* -- how densely memory is written ---------------------------------------------------------------------------- */

struct huge_sight huge_look(const void *at, size_t bytes) {
    size_t page = os_page_bytes(), pages = bytes / page;
    size_t pieces = bits_min((pages + OS_PRESENT_MOST - 1) / OS_PRESENT_MOST, PIECES_MOST);
    size_t looked_at = 0, present = 0, end = 0;
    for (size_t i = 0; i < pieces; i++) {
        size_t length = bits_min(pages, OS_PRESENT_MOST);
        size_t from = pieces == 1 ? 0 : (pages - length) / (pieces - 1) * i; /* they overlap where they cover all */
        unsigned there = os_present((const char *)at + from * page, (unsigned)length);
        if (there == OS_PRESENT_UNKNOWN) {
            return (struct huge_sight){SIGHT_NONE, HUGE_ENDS};
        }
        size_t next = i + 1 == pieces ? pages : (pages - length) / (pieces - 1) * (i + 1);
        end = there == length ? next : there > 0 ? from + there : end; /* it is written from its start on, as a rule */
        looked_at += length;
        present += there;
    }
    if (pages == 0) {
        return (struct huge_sight){SIGHT_NONE, HUGE_ENDS};
    }
    bool dense = looked_at - present <= looked_at / HOLES_SHARE;
    uint32_t written = (uint32_t)((end * HUGE_ENDS + pages - 1) / pages);
    return (struct huge_sight){dense ? SIGHT_DENSE : SIGHT_SPARSE, written};
}

void huge_saw(uint32_t use, uint32_t slices, struct huge_sight sight) {
    history[use].unwritten = (uint8_t)bits_min(HUGE_ENDS - sight.written, UINT8_MAX);
    if (sight.density == SIGHT_SPARSE) {
        history[use].credit = 0;
        history[use].wary = (uint8_t)bits_min(bits_max(2 * (size_t)history[use].wary + 1, WARY_LEAST), WARY_MOST);
        history[use].lacking = history[use].wary;
        history[use].calm = 0;
    } else if (sight.density == SIGHT_DENSE && history[use].lacking > 0) {
        history[use].lacking--;
    } else if (sight.density == SIGHT_DENSE) {
        size_t granted = use <= CLASS_COUNT ? GRANTED_SLABS : GRANTED_BLOCKS;
        size_t most = bits_min((size_t)GRANTED_MOST * slices, UINT32_MAX);
        history[use].credit = (uint32_t)bits_min(history[use].credit + granted * slices, most);
        if (++history[use].calm > WARY_MOST) {
            history[use].wary /= 2;
            history[use].calm = 0;
        }
    }
}

uint32_t huge_unwritten(uint32_t use, uint32_t slices) {
    size_t unwritten = history[use].lacking == 0 ? 0 : (size_t)slices * history[use].unwritten / HUGE_ENDS;
    return unwritten < UNWRITTEN_LEAST ? 0 : (uint32_t)unwritten;
}

void huge_watch_slab(uint32_t use, uint32_t slab) {
    if (history[use].slab == 0) {
        history[use].slab = slab;
        history[use].slabs = 0;
    }
}

uint32_t huge_slab_to_look_at(uint32_t use) {
    uint32_t slab = history[use].slab;
    if (slab == 0 || ++history[use].slabs <= LOOK_AFTER) {
        return 0;
    }
    history[use].slab = 0;
    return slab;
}

void huge_slab_is_gone(uint32_t use, uint32_t slab) {
    if (history[use].slab == slab) {
        history[use].slab = 0;
    }
}

void huge_spend(uint32_t use, uint32_t slices) {
    history[use].credit -= (uint32_t)bits_min(history[use].credit, slices);
}

bool huge_is_available(uint32_t slices) {
    uint32_t from = option_value(OPTION_HUGE_FROM_MIB);
    if (huge.rest != 0 && stamp_is_ahead(huge.rest_over, os_milliseconds(), HUGE_REST_MOST_MS)) {
        return false;
    }
    return from != HUGE_NEVER && (slices >= HUGE_OBJECT || spans_used() >= from << (20 - SLICE_BITS));
}

bool huge_is_wanted(uint32_t use, uint32_t slices) {
    return history[use].credit >= slices && huge_is_available(slices);
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
    return os_nanoseconds() - before > (uint64_t)option_value(OPTION_HUGE_SLOW_US) * 1000;
}

void huge_look_if_given(const void *chunk) {
    unsigned pages = (unsigned)(((size_t)CHUNK_SLICES << SLICE_BITS) / os_page_bytes());
    if (!atomic_load_explicit(&huge.quick, memory_order_relaxed) && pages <= OS_PRESENT_MOST &&
        os_present(chunk, pages) == pages) {
        atomic_store_explicit(&huge.quick, true, memory_order_relaxed);
    }
}

bool huge_gives_way(uint32_t use) {
    return history[use].lacking > 0 || atomic_load_explicit(&huge.quick, memory_order_relaxed);
}

void huge_rest(void) {
    atomic_store_explicit(&huge.quick, false, memory_order_relaxed);
    huge.rest = (uint32_t)bits_min(bits_max(2 * (size_t)huge.rest, HUGE_REST_MS), HUGE_REST_MOST_MS);
    huge.rest_over = os_milliseconds() + huge.rest;
}

uint32_t huge_ahead(void) { return (uint32_t)bits_min(spans_used() / HUGE_SHARE, HUGE_AHEAD); }
