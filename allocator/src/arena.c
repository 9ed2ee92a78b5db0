#include "arena.h"

#include <string.h>

#include "keeper.h"
#include "lock.h"
#include "options.h"
#include "os.h"

enum {
    BIN_EXACT = 64, /* a bin for each length up to 64 slices, then eight bins per doubling */
    BIN_COUNT = BIN_EXACT + (24 - 6) * 8 + 8,
    BIN_WORDS = (BIN_COUNT + 63) / 64,
    FIT_SEARCH = 32, /* spans of an inexact bin looked at for the best fit */
    COMMIT_LEAST = 32,
    COMMIT_MOST = 4096,
    BOOKKEEPING_LEAST = 1024, /* slices whose bookkeeping is committed at first: 64 MiB */
    KEEPER_SLICES = 64,       /* dirty slices that are worth a thread that returns them: 4 MiB */
    CHUNK_SLICES = 32,        /* a huge page: 2 MiB */
    HUGE_OBJECT = 64,         /* slices of a block that has huge pages whatever the size of the program: 4 MiB */
    HUGE_SHARE = 8,           /* huge pages are asked for ahead for this share of what is in use, */
    HUGE_AHEAD = 1024,        /* up to 64 MiB */
    HUGE_SLOW_NS = 800000,    /* a huge page that takes longer is dearer than 512 small ones (1.5 us each) */
    HUGE_REST_MS = 1000,      /* for how long there are none then; twice as long each time, */
    HUGE_REST_MOST_MS = 64000, /* up to this */
};

/* Free spans of one kind by length. */
struct bins {
    uint32_t head[BIN_COUNT];
    uint64_t occupied[BIN_WORDS];
};

struct window window;
struct span *arena_spans;
char *arena_bitmaps;

/* Everything below is protected by arena.lock. `used`, `dirty` and `oldest` are atomics because arena_age reads them
 * without it to see whether there is anything to do: a stale answer only delays a purge. */
static struct {
    struct lock lock;
    uint32_t first;       /* first slice that can be handed out */
    uint32_t front;       /* first slice never handed out */
    uint32_t committed;   /* slices the kernel has made usable */
    uint32_t bookkept;    /* slices whose bookkeeping is usable */
    uint32_t limit;       /* slices reserved */
    uint32_t dirty_old;   /* oldest and youngest dirty span */
    uint32_t dirty_young;
    _Atomic uint32_t used; /* slices in used spans */
    uint32_t awaiting;    /* threads asleep on `purging` */
    _Atomic uint32_t purging; /* spans that some thread is purging at the moment; changed under the lock */
    _Atomic uint32_t dirty;
    _Atomic uint32_t oldest; /* stamp of dirty_old */
    uint64_t purged;
    uint32_t populated; /* behind the slices brought in ahead */
    uint32_t window;    /* slices brought in the last time */
    uint32_t rest;      /* HUGE_REST_MS and so on, 0 before the first slow huge page */
    uint32_t rest_over; /* stamp: no huge pages are asked for before it */
    bool refused; /* the kernel took no purge since a span was last given back: asking again is in vain */
    struct bins bins[3]; /* [0] dirty, [1] clean, [2] huge */
} arena;

static struct bins *bins_of(enum span_state state) { return &arena.bins[state - SPAN_DIRTY]; }
_Static_assert(SPAN_CLEAN == SPAN_DIRTY + 1 && SPAN_HUGE == SPAN_DIRTY + 2, "the bins are numbered so");

static uint32_t now(void) { return (uint32_t)os_milliseconds(); }

/* -- free lists ---------------------------------------------------------------------------------------------- */

static unsigned bin_of(uint32_t slices) {
    if (slices <= BIN_EXACT) {
        return slices - 1;
    }
    unsigned doubling = bits_highest(slices); /* 6 and more */
    return BIN_EXACT + (doubling - 6) * 8 + ((slices >> (doubling - 3)) & 7);
}

static void bin_insert(uint32_t slice) {
    struct span *span = arena_span(slice);
    struct bins *bins = bins_of(span->state);
    unsigned bin = bin_of(span->slices);
    span->prev = 0;
    span->next = bins->head[bin];
    if (span->next != 0) {
        arena_span(span->next)->prev = slice;
    }
    bins->head[bin] = slice;
    bins->occupied[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static void bin_remove(uint32_t slice) {
    struct span *span = arena_span(slice);
    struct bins *bins = bins_of(span->state);
    unsigned bin = bin_of(span->slices);
    if (span->next != 0) {
        arena_span(span->next)->prev = span->prev;
    }
    if (span->prev != 0) {
        arena_span(span->prev)->next = span->next;
    } else {
        bins->head[bin] = span->next;
        if (span->next == 0) {
            bins->occupied[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
        }
    }
}

/* The shortest of the first FIT_SEARCH spans in the bin that are at least `slices` long, or 0. */
static uint32_t bin_best(const struct bins *bins, unsigned bin, uint32_t slices) {
    uint32_t best = 0;
    uint32_t at = bins->head[bin];
    for (int seen = 0; at != 0 && seen < FIT_SEARCH; seen++) {
        uint32_t length = arena_span(at)->slices;
        if (length >= slices && (best == 0 || length < arena_span(best)->slices)) {
            best = at;
        }
        at = arena_span(at)->next;
    }
    return best;
}

static uint32_t find(const struct bins *bins, uint32_t slices) {
    unsigned bin = bin_of(slices);
    uint32_t found = bin_best(bins, bin, slices);
    if (found != 0) {
        return found;
    }
    bin++; /* every span in a higher bin is long enough */
    for (unsigned word = bin / 64; word < BIN_WORDS; word++) {
        uint64_t occupied = bins->occupied[word];
        if (word == bin / 64) {
            occupied &= ~bits_low(bin % 64);
        }
        if (occupied != 0) {
            return bin_best(bins, word * 64 + bits_lowest(occupied), slices);
        }
    }
    return 0;
}

/* -- age queue of dirty spans -------------------------------------------------------------------------------- */

static void note_oldest(void) {
    if (arena.dirty_old != 0) {
        atomic_store_explicit(&arena.oldest, arena_span(arena.dirty_old)->stamp, memory_order_relaxed);
    }
}

static void age_append(uint32_t slice) {
    struct span *span = arena_span(slice);
    span->age_next = 0;
    span->age_prev = arena.dirty_young;
    if (arena.dirty_young != 0) {
        arena_span(arena.dirty_young)->age_next = slice;
    } else {
        arena.dirty_old = slice;
    }
    arena.dirty_young = slice;
    atomic_fetch_add_explicit(&arena.dirty, span->slices, memory_order_relaxed);
    note_oldest();
}

static void age_remove(uint32_t slice) {
    struct span *span = arena_span(slice);
    if (span->age_next != 0) {
        arena_span(span->age_next)->age_prev = span->age_prev;
    } else {
        arena.dirty_young = span->age_prev;
    }
    if (span->age_prev != 0) {
        arena_span(span->age_prev)->age_next = span->age_next;
    } else {
        arena.dirty_old = span->age_next;
    }
    atomic_fetch_sub_explicit(&arena.dirty, span->slices, memory_order_relaxed);
    note_oldest();
}

/* `rest` takes the place of `slice` in the queue: what is left of a span is as old as the span was. */
static void age_replace(uint32_t slice, uint32_t rest) {
    struct span *old = arena_span(slice);
    struct span *new = arena_span(rest);
    new->stamp = old->stamp;
    new->age_next = old->age_next;
    new->age_prev = old->age_prev;
    if (new->age_next != 0) {
        arena_span(new->age_next)->age_prev = rest;
    } else {
        arena.dirty_young = rest;
    }
    if (new->age_prev != 0) {
        arena_span(new->age_prev)->age_next = rest;
    } else {
        arena.dirty_old = rest;
    }
}

/* -- spans --------------------------------------------------------------------------------------------------- */

/* Invariants of the descriptors:
 *   state != SPAN_UNUSED     exactly for the first slice of a span
 *   spans[last].first        is the first slice, for the last slice of every span
 *   two neighbours           are never both dirty nor both clean */
static void describe(uint32_t slice, uint32_t slices, enum span_state state) {
    struct span *span = arena_span(slice);
    span->slices = slices;
    span->state = (uint8_t)state;
    span->first = slice;
    arena_span(slice + slices - 1)->first = slice;
}

/* The free span of kind `state` that ends right before `slice`, or 0. */
static uint32_t left_neighbour(uint32_t slice, enum span_state state) {
    if (slice == arena.first) {
        return 0;
    }
    uint32_t first = arena_span(slice - 1)->first;
    return arena_span(first)->state == state ? first : 0;
}

static uint32_t right_neighbour(uint32_t slice, uint32_t slices, enum span_state state) {
    uint32_t next = slice + slices;
    return next < arena.front && arena_span(next)->state == state ? next : 0;
}

/* Makes a span free, joined with its free neighbours of the same kind. */
static void make_free(uint32_t slice, uint32_t slices, enum span_state state) {
    uint32_t left = left_neighbour(slice, state);
    uint32_t right = right_neighbour(slice, slices, state);
    if (right != 0) {
        bin_remove(right);
        if (state == SPAN_DIRTY) {
            age_remove(right);
        }
        slices += arena_span(right)->slices;
        arena_span(right)->state = SPAN_UNUSED;
    }
    arena_span(slice)->state = SPAN_UNUSED;
    if (left != 0) {
        bin_remove(left);
        if (state == SPAN_DIRTY) {
            age_remove(left);
        }
        slices += arena_span(left)->slices;
        slice = left;
    }
    describe(slice, slices, state);
    bin_insert(slice);
    if (state == SPAN_DIRTY) {
        arena_span(slice)->stamp = now();
        age_append(slice);
    }
}

/* Turns the first `slices` of a free span into a used one; what is left stays free, of the same kind and age. */
static void use_front(uint32_t slice, uint32_t slices) {
    struct span *span = arena_span(slice);
    enum span_state state = span->state;
    uint32_t rest = span->slices - slices;
    bin_remove(slice);
    if (state == SPAN_DIRTY) {
        if (rest != 0) {
            age_replace(slice, slice + slices);
            atomic_fetch_sub_explicit(&arena.dirty, slices, memory_order_relaxed);
        } else {
            age_remove(slice);
        }
    }
    if (rest != 0) {
        describe(slice + slices, rest, state);
        bin_insert(slice + slices);
    }
    describe(slice, slices, SPAN_USED);
    arena.used += slices;
}

/* -- the frontier -------------------------------------------------------------------------------------------- */

/* Commits the pages of [at + from * unit, at + to * unit); the page that `from` lies in the midst of has been. */
static bool commit_rows(char *at, size_t unit, uint32_t from, uint32_t to) {
    size_t page = os_page_bytes();
    size_t start = bits_round_up(from * unit, page);
    if (from == arena.first) {
        start = from * unit & ~(page - 1); /* nothing has been yet */
    }
    size_t end = bits_round_up(to * unit, page);
    return start >= end || os_commit(at + start, end - start);
}

static bool bookkeep(uint32_t slices) {
    if (slices < arena.bookkept) {
        return true;
    }
    size_t had = arena.bookkept - arena.first;
    uint32_t to = (uint32_t)bits_min(arena.limit, bits_max(slices, arena.first + bits_max(2 * had, BOOKKEEPING_LEAST)));
    /* The bookkeeping's own slices need no descriptors, but a tag each: any address below extent may be asked for. */
    uint32_t tags_from = arena.bookkept == arena.first ? 0 : arena.bookkept;
    if (!commit_rows((char *)window.base, sizeof(uint32_t), tags_from, to) ||
        !commit_rows((char *)arena_spans, sizeof(struct span), arena.bookkept, to) ||
        !commit_rows(arena_bitmaps, BITMAP_BYTES, arena.bookkept, to)) {
        return false;
    }
    arena.bookkept = to;
    return true;
}

/* Makes the slices below `to` usable; more than that when memory allows, so that the kernel is rarely asked. */
static bool commit(uint32_t to) {
    if (to <= arena.committed) {
        return true;
    }
    if (to > arena.limit || !bookkeep(to)) {
        return false;
    }
    size_t had = arena.committed - arena.first; /* the bookkeeping's own slices do not count */
    size_t step = bits_min(bits_max(had / 2, COMMIT_LEAST), COMMIT_MOST);
    uint32_t generous = (uint32_t)bits_min(bits_max(arena.committed + step, to), arena.limit);
    if (bookkeep(generous) &&
        os_commit(arena_address(arena.committed), (size_t)(generous - arena.committed) << SLICE_BITS)) {
        arena.committed = generous;
        return true;
    }
    if (os_commit(arena_address(arena.committed), (size_t)(to - arena.committed) << SLICE_BITS)) {
        arena.committed = to;
        return true;
    }
    return false;
}

static void move_front(uint32_t front) {
    arena.front = front;
    /* relaxed: see tag_of */
    __atomic_store_n(&window.extent, (size_t)front << SLICE_BITS, __ATOMIC_RELAXED);
}

/* The first slice from `slice` on whose address is a multiple of `alignment` slices: the base is one of a slice only. */
static uint32_t align(uint32_t slice, uint32_t alignment) {
    uintptr_t base = window.base >> SLICE_BITS;
    return (uint32_t)(bits_round_up(base + slice, alignment) - base);
}

/* A used span from what was never touched, or 0. */
static uint32_t take_fresh(uint32_t slices, uint32_t alignment) {
    uint32_t slice = align(arena.front, alignment);
    if (slice < arena.front || slices > arena.limit || slice > arena.limit - slices || !commit(slice + slices)) {
        return 0;
    }
    uint32_t gap = slice - arena.front;
    uint32_t gap_at = arena.front;
    move_front(slice + slices);
    describe(slice, slices, SPAN_USED);
    arena.used += slices;
    if (gap != 0) {
        make_free(gap_at, gap, SPAN_CLEAN);
    }
    return slice;
}

/* A used span out of the free ones of one kind, or 0. */
static uint32_t take_free(enum span_state state, uint32_t slices, uint32_t alignment) {
    uint32_t slice = find(bins_of(state), slices + alignment - 1);
    if (slice == 0) {
        return 0;
    }
    uint32_t fit = align(slice, alignment);
    if (fit != slice) { /* only for alignments above a slice: use all, then give the head back */
        uint32_t whole = arena_span(slice)->slices;
        use_front(slice, whole);
        arena.used -= fit - slice;
        describe(fit, whole - (fit - slice), SPAN_USED);
        make_free(slice, fit - slice, state);
        uint32_t rest = arena_span(fit)->slices - slices;
        if (rest != 0) {
            arena.used -= rest;
            describe(fit, slices, SPAN_USED);
            make_free(fit + slices, rest, state);
        }
        return fit;
    }
    use_front(slice, slices);
    return slice;
}

/* -- huge pages ---------------------------------------------------------------------------------------------- */

/* Whether `slices` more of memory that will be written throughout are to have huge pages. */
static bool wants_huge(uint32_t slices) {
    uint32_t from = option_value(OPTION_HUGE_FROM_MIB);
    if (arena.rest != 0 && (int32_t)(now() - arena.rest_over) < 0) {
        return false;
    }
    return from != HUGE_NEVER && (slices >= HUGE_OBJECT || arena.used >= from << (20 - SLICE_BITS));
}

/* The first slice of the chunk that `slice` lies in; it may lie before the first that is handed out. */
static uint32_t chunk_of(uint32_t slice) {
    uintptr_t base = window.base >> SLICE_BITS;
    return (uint32_t)(((base + slice) & ~(uintptr_t)(CHUNK_SLICES - 1)) - base);
}

/* Asks for huge pages in the chunks that begin in the span, as far as memory is committed. */
static void ask_for_huge(uint32_t slice, uint32_t slices) {
    uint32_t first = align(slice, CHUNK_SLICES);
    uint32_t end = (uint32_t)bits_min(align(slice + slices, CHUNK_SLICES), arena.committed);
    if (first >= slice + slices) {
        return;
    }
    os_prefer_huge(arena_address(first), (size_t)(end - first) << SLICE_BITS);
    for (uint32_t chunk = first; chunk < end; chunk += CHUNK_SLICES) {
        arena_span(chunk)->huge = true;
    }
}

/* A used span that begins with a chunk and costs no memory yet, or 0. */
static uint32_t take_from_chunk(uint32_t slices) {
    uint32_t slice = take_free(SPAN_CLEAN, slices, CHUNK_SLICES);
    return slice != 0 ? slice : take_fresh(slices, CHUNK_SLICES);
}

/* Makes a free-huge span of at least `slices`. False when memory is out. */
static bool open_huge(uint32_t slices) {
    uint32_t ahead = (uint32_t)bits_min(arena.used / HUGE_SHARE, HUGE_AHEAD);
    uint32_t want = (uint32_t)bits_round_up(bits_max(slices, ahead), CHUNK_SLICES);
    uint32_t slice = take_from_chunk(want);
    if (slice == 0) {
        return false;
    }
    ask_for_huge(slice, want);
    arena.used -= want;
    make_free(slice, want, SPAN_HUGE);
    return true;
}

/* True for a single object of which less than half of the last chunk would be used. */
static bool has_little_tail(uint32_t slices) {
    uint32_t tail = slices % CHUNK_SLICES;
    return slices >= HUGE_OBJECT && tail > 0 && tail < CHUNK_SLICES / 2;
}

/* A span for it, with huge pages but in its tail. 0 when memory is out. */
static uint32_t take_huge_but_tail(uint32_t slices) {
    uint32_t slice = take_from_chunk(slices);
    if (slice != 0) {
        ask_for_huge(slice, slices - slices % CHUNK_SLICES);
    }
    return slice;
}

static uint32_t take_huge(uint32_t slices, uint32_t alignment) {
    uint32_t slice = take_free(SPAN_HUGE, slices, alignment);
    if (slice == 0 && alignment <= CHUNK_SLICES && has_little_tail(slices)) {
        return take_huge_but_tail(slices);
    }
    if (slice == 0 && open_huge(slices + alignment - 1)) {
        slice = take_free(SPAN_HUGE, slices, alignment);
    }
    return slice;
}

/* Takes a chunk out of the huge ones. */
static void make_plain(uint32_t chunk) {
    if (chunk >= arena.first && chunk < arena.front && arena_span(chunk)->huge) {
        arena_span(chunk)->huge = false;
        os_avoid_huge(arena_address(chunk), (size_t)CHUNK_SLICES << SLICE_BITS);
    }
}

/* Takes the chunks that begin in [slice, end) out of the huge ones. */
static void make_all_plain(uint32_t slice, uint32_t end) {
    for (uint32_t chunk = align(slice, CHUNK_SLICES); chunk < end; chunk += CHUNK_SLICES) {
        make_plain(chunk);
    }
}

/* A purged span is free. Whole chunks in it that are huge remain so. */
static void make_free_purged(uint32_t slice, uint32_t slices) {
    uint32_t end = slice + slices;
    while (slice < end) {
        uint32_t chunk = chunk_of(slice);
        uint32_t next = (uint32_t)bits_min(chunk + CHUNK_SLICES, end);
        bool whole = chunk == slice && next == chunk + CHUNK_SLICES;
        if (!whole) {
            make_plain(chunk);
        }
        make_free(slice, next - slice, whole && arena_span(slice)->huge ? SPAN_HUGE : SPAN_CLEAN);
        slice = next;
    }
}

/* All free-huge spans become clean ones, and are so joined with those. */
static void level(void) {
    for (unsigned bin = 0; bin < BIN_COUNT; bin++) {
        uint32_t slice;
        while ((slice = bins_of(SPAN_HUGE)->head[bin]) != 0) {
            uint32_t slices = arena_span(slice)->slices;
            bin_remove(slice);
            make_all_plain(slice, slice + slices);
            make_free(slice, slices, SPAN_CLEAN);
        }
    }
}

/* Touches a chunk, which is zero and stays so. True when that took too long. Without the lock: it takes a fraction of a
 * millisecond at best. */
static bool is_slow(void *chunk) {
    uint64_t before = os_nanoseconds();
    *(volatile char *)chunk = 0;
    return os_nanoseconds() - before > HUGE_SLOW_NS;
}

/* No huge pages for a while. */
static void rest_from_huge(void) {
    arena.rest = (uint32_t)bits_min(bits_max(2 * (size_t)arena.rest, HUGE_REST_MS), HUGE_REST_MOST_MS);
    arena.rest_over = now() + arena.rest;
    level();
}

/* Tries the first chunk that begins in a span just taken. If that takes too long, the rest of the span and all that is free do
 * without huge pages, and so does what comes in the next seconds. */
static void try_huge(uint32_t slice, uint32_t slices) {
    uint32_t chunk = align(slice, CHUNK_SLICES);
    if (chunk >= slice + slices) {
        return; /* in a chunk that others have begun */
    }
    if (likely(!is_slow(arena_address(chunk)))) {
        return;
    }
    lock_take(&arena.lock);
    make_all_plain(chunk + 1, slice + slices);
    rest_from_huge();
    lock_free(&arena.lock);
}

void arena_prefer_huge(void *at, size_t bytes, bool fresh) {
    lock_take(&arena.lock);
    bool wanted = wants_huge(HUGE_OBJECT);
    lock_free(&arena.lock);
    if (!wanted) {
        return;
    }
    os_prefer_huge(at, bytes);
    size_t chunk_bytes = (size_t)CHUNK_SLICES << SLICE_BITS;
    uintptr_t chunk = bits_round_up((uintptr_t)at, chunk_bytes);
    if (fresh && chunk + chunk_bytes <= (uintptr_t)at + bytes && is_slow((void *)chunk)) {
        os_avoid_huge(at, bytes);
        lock_take(&arena.lock);
        rest_from_huge();
        lock_free(&arena.lock);
    }
}

/* Brings in what a program that grows will write next: [*from, and as many slices as it returns], under the lock to plan, to
 * be done without it. None while what was brought in before suffices, and never more than is in use already. It is in
 * nobody's way: fresh memory is handed out from there on, and whoever has it by then finds its pages as they were. */
static uint32_t plan_ahead(uint32_t slice, uint32_t *from) {
    uint32_t most = option_value(OPTION_POPULATE_KIB) / (SLICE_BYTES / 1024);
    if (likely(most == 0) || arena.front <= arena.populated) {
        return 0;
    }
    uint32_t window = (uint32_t)bits_min(bits_max(2 * (size_t)arena.window, 1), most);
    *from = (uint32_t)bits_max(slice, arena.populated);
    uint32_t to = (uint32_t)bits_min(*from + bits_min(window, arena.used), arena.limit);
    if (!commit(to)) {
        return 0;
    }
    arena.window = window;
    arena.populated = to;
    return to - *from;
}

/* -- purging ------------------------------------------------------------------------------------------------- */

static uint64_t budget_slices(void) {
    uint64_t used = atomic_load_explicit(&arena.used, memory_order_relaxed);
    return ((uint64_t)option_value(OPTION_RETAIN_MIB) << (20 - SLICE_BITS)) +
           used * option_value(OPTION_RETAIN_PERCENT) / 100;
}

static bool oldest_has_aged(void) {
    uint32_t age = now() - atomic_load_explicit(&arena.oldest, memory_order_relaxed);
    return age > option_value(OPTION_RETAIN_MS);
}

/* Purges the oldest dirty span. The lock is dropped meanwhile, so that others go on; the span belongs to nobody
 * then (SPAN_PURGING is neither joined nor taken). Returns its bytes, 0 when the kernel refused. */
static size_t purge_oldest(void) {
    uint32_t slice = arena.dirty_old;
    uint32_t slices = arena_span(slice)->slices;
    bin_remove(slice);
    age_remove(slice);
    arena_span(slice)->state = SPAN_PURGING;
    atomic_fetch_add_explicit(&arena.purging, 1, memory_order_relaxed);
    lock_free(&arena.lock);
    size_t bytes = (size_t)slices << SLICE_BITS;
    bool purged = os_purge(arena_address(slice), bytes);
    lock_take(&arena.lock);
    atomic_fetch_sub_explicit(&arena.purging, 1, memory_order_relaxed);
    if (purged) {
        make_free_purged(slice, slices);
    } else {
        make_free(slice, slices, SPAN_DIRTY);
    }
    for (uint32_t asleep = arena.awaiting; unlikely(asleep > 0); asleep--) { /* all: this may be the last purge */
        os_wake(&arena.purging);
    }
    arena.refused = !purged;
    if (!purged) {
        return 0;
    }
    arena.purged += bytes;
    return bytes;
}

static void purge_what_is_due(void) {
    while (arena.dirty_old != 0 && (arena.dirty > budget_slices() || oldest_has_aged())) {
        if (purge_oldest() == 0) {
            return; /* locked memory */
        }
    }
}

void arena_age(void) {
    uint32_t dirty = atomic_load_explicit(&arena.dirty, memory_order_relaxed);
    if (dirty == 0 || (dirty <= budget_slices() && !oldest_has_aged())) {
        return;
    }
    lock_take(&arena.lock);
    purge_what_is_due();
    lock_free(&arena.lock);
}

size_t arena_keep(bool *more) {
    lock_take(&arena.lock);
    uint64_t before = arena.purged;
    purge_what_is_due();
    *more = arena.dirty_old != 0 && !arena.refused;
    size_t bytes = (size_t)(arena.purged - before);
    lock_free(&arena.lock);
    return bytes;
}

static size_t purge_all(void) {
    size_t total = 0;
    while (arena.dirty_old != 0) {
        size_t bytes = purge_oldest();
        if (bytes == 0) {
            break;
        }
        total += bytes;
    }
    return total;
}

size_t arena_purge_all(void) {
    lock_take(&arena.lock);
    size_t total = purge_all();
    lock_free(&arena.lock);
    return total;
}

/* The last resort: everything free is made clean, and so joined, also what other threads are purging just now. */
static uint32_t take_joined(uint32_t slices, uint32_t alignment) {
    for (;;) {
        purge_all();
        level();
        uint32_t slice = take_free(SPAN_CLEAN, slices, alignment);
        uint32_t purging = atomic_load_explicit(&arena.purging, memory_order_relaxed);
        if (slice != 0 || purging == 0 || lock_holds_all()) { /* who purges would wait for this thread's fork */
            return slice;
        }
        arena.awaiting++;
        lock_free(&arena.lock);
        os_wait(&arena.purging, purging); /* returns at once when it has changed since */
        lock_take(&arena.lock);
        arena.awaiting--;
    }
}

/* -- the interface ------------------------------------------------------------------------------------------- */

bool arena_open(void) {
    size_t page = os_page_bytes();
    for (size_t bytes = (size_t)1 << 40; bytes >= (size_t)1 << 20; bytes >>= 1) {
        char *at = os_reserve(bytes, SLICE_BYTES);
        if (at == NULL) {
            continue;
        }
        size_t slices = bytes >> SLICE_BITS;
        size_t tags = bits_round_up(slices * sizeof(uint32_t), page);
        size_t spans = bits_round_up(slices * sizeof(struct span), page);
        size_t bitmaps = bits_round_up(slices * BITMAP_BYTES, page);
        window.base = (uintptr_t)at;
        arena_spans = (struct span *)(void *)(at + tags);
        arena_bitmaps = at + tags + spans;
        arena.limit = (uint32_t)slices;
        arena.first = (uint32_t)(bits_round_up(tags + spans + bitmaps, SLICE_BYTES) >> SLICE_BITS);
        arena.front = arena.first;
        arena.committed = arena.first; /* never handed out, so it need not be */
        arena.bookkept = arena.first;
        if (bookkeep(arena.first)) {
            return true;
        }
        os_unmap(at, bytes); /* a shorter street has fewer tags to commit */
    }
    window.base = 0;
    return false;
}

uint32_t arena_take(uint32_t slices, uint32_t alignment, bool dense, bool *zero) {
    lock_take(&arena.lock);
    uint32_t slice = take_free(SPAN_DIRTY, slices, alignment);
    *zero = slice == 0;
    bool huge = false;
    if (slice == 0 && dense && wants_huge(slices)) {
        slice = take_huge(slices, alignment);
        huge = slice != 0;
    }
    if (slice == 0) {
        slice = take_free(SPAN_CLEAN, slices, alignment);
    }
    uint32_t ahead = 0, from = 0;
    if (slice == 0) {
        slice = take_fresh(slices, alignment);
        ahead = slice != 0 && dense ? plan_ahead(slice, &from) : 0;
    }
    if (slice == 0) {
        slice = take_free(SPAN_HUGE, slices, alignment);
    }
    if (slice == 0) { /* out of street: dirty and clean neighbours may be long enough together */
        slice = take_joined(slices, alignment);
    }
    lock_free(&arena.lock);
    if (huge) {
        try_huge(slice, slices);
    }
    if (unlikely(ahead > 0)) {
        os_populate(arena_address(from), (size_t)ahead << SLICE_BITS);
    }
    return slice;
}

/* A span was given back. */
static void wish_for_keeper(void) {
    arena.refused = false;
    if (arena.dirty >= KEEPER_SLICES) {
        keeper_wish();
    }
}

bool arena_give(uint32_t slice) {
    lock_take(&arena.lock);
    bool used = arena_span(slice)->state == SPAN_USED;
    if (likely(used)) {
        uint32_t slices = arena_span(slice)->slices;
        arena_tag(slice, slices, TAG_NONE);
        arena.used -= slices;
        make_free(slice, slices, SPAN_DIRTY);
        wish_for_keeper();
    }
    lock_free(&arena.lock);
    return used;
}

void arena_give_clean(uint32_t slice) {
    lock_take(&arena.lock);
    uint32_t slices = arena_span(slice)->slices;
    arena_tag(slice, slices, TAG_NONE);
    arena.used -= slices;
    make_free_purged(slice, slices);
    lock_free(&arena.lock);
}

bool arena_purge_pages(void *at, size_t bytes) {
    lock_take(&arena.lock);
    uint32_t last = arena_slice((char *)at + bytes - 1);
    for (uint32_t chunk = chunk_of(arena_slice(at)); chunk <= last; chunk += CHUNK_SLICES) {
        make_plain(chunk);
    }
    lock_free(&arena.lock);
    if (!os_purge(at, bytes)) {
        return false;
    }
    lock_take(&arena.lock);
    arena.purged += bytes;
    lock_free(&arena.lock);
    return true;
}

static bool is_free(uint32_t slice) {
    enum span_state state = arena_span(slice)->state;
    return state == SPAN_DIRTY || state == SPAN_CLEAN || state == SPAN_HUGE;
}

/* Takes the `more` slices behind a used span that follow at `next`: free ones, as far as there are, then from the frontier. */
static bool take_behind(uint32_t next, uint32_t more) {
    uint32_t end = next + more;
    uint32_t free_there = next < arena.front && is_free(next) ? arena_span(next)->slices : 0;
    if (free_there < more && (next + free_there != arena.front || end < next || end > arena.limit || !commit(end))) {
        return false;
    }
    if (free_there > 0) {
        use_front(next, (uint32_t)bits_min(free_there, more));
        arena_span(next)->state = SPAN_UNUSED;
    }
    if (free_there < more) {
        move_front(end);
        arena.used += more - free_there;
    }
    return true;
}

bool arena_extend(uint32_t slice, uint32_t slices) {
    lock_take(&arena.lock);
    uint32_t had = arena_span(slice)->slices;
    uint32_t front = arena.front;
    bool extended = take_behind(slice + had, slices - had);
    if (extended) {
        describe(slice, slices, SPAN_USED);
        if (arena.front != front && slices >= HUGE_OBJECT && wants_huge(slices)) { /* what grows is written */
            ask_for_huge(front, arena.front - front);
        }
    }
    lock_free(&arena.lock);
    return extended;
}

void arena_shorten(uint32_t slice, uint32_t slices) {
    uint32_t rest = arena_span(slice)->slices - slices;
    arena_tag(slice + slices, rest, TAG_NONE);
    lock_take(&arena.lock);
    describe(slice, slices, SPAN_USED);
    arena.used -= rest;
    make_free(slice + slices, rest, SPAN_DIRTY);
    wish_for_keeper();
    lock_free(&arena.lock);
}

void arena_tag(uint32_t slice, uint32_t slices, uint32_t tag) {
    uint32_t *tags = (uint32_t *)window.base;
    for (uint32_t i = 0; i < slices; i++) {
        __atomic_store_n(&tags[slice + i], tag, __ATOMIC_RELAXED); /* see tag_of */
    }
}

bool arena_was_freed(const void *pointer, size_t *bytes) {
    lock_take(&arena.lock);
    uint32_t slice = (uint32_t)bits_max(arena_slice(pointer), arena.first);
    while (slice > arena.first && arena_span(slice)->state == SPAN_UNUSED) {
        slice--;
    }
    const struct span *span = arena_span(slice);
    bool freed = slice <= arena_slice(pointer) && span->state != SPAN_UNUSED && span->state != SPAN_USED;
    *bytes = (size_t)span->slices << SLICE_BITS;
    lock_free(&arena.lock);
    return freed;
}

uint32_t arena_first_slice(void) { return arena.first; }

void arena_figures(struct arena_figures *figures) {
    lock_take(&arena.lock);
    *figures = (struct arena_figures){
        .reserved = (size_t)arena.limit << SLICE_BITS,
        .extent = (size_t)(arena.front - arena.first) << SLICE_BITS,
        .used = (size_t)arena.used << SLICE_BITS,
        .dirty = (size_t)arena.dirty << SLICE_BITS,
        /* of what was ever handed out: rows beyond are usable, and untouched */
        .bookkeeping = (size_t)(arena.front - arena.first) * (sizeof(uint32_t) + sizeof(struct span) + BITMAP_BYTES),
        .purged = arena.purged,
    };
    lock_free(&arena.lock);
}

void arena_before_fork(void) { lock_take(&arena.lock); }

/* A span that another thread was purging belongs to nobody in the child: how far that got is unknown. */
static void adopt_purging(void) {
    uint32_t slice = arena.first;
    while (arena.purging > 0 && slice < arena.front) {
        uint32_t slices = arena_span(slice)->slices;
        if (arena_span(slice)->state == SPAN_PURGING) {
            make_free(slice, slices, SPAN_DIRTY);
            atomic_fetch_sub_explicit(&arena.purging, 1, memory_order_relaxed);
        }
        slice += slices;
    }
}

void arena_after_fork(bool child) {
    if (child) {
        arena.awaiting = 0;
        adopt_purging();
        lock_reset(&arena.lock);
    } else {
        lock_free(&arena.lock);
    }
}
