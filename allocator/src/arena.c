#include "arena.h"

#include <stdatomic.h>

#include "ages.h"
#include "arena_lock.h"
#include "bins.h"
#include "control_group.h"
#include "gate.h"
#include "huge.h"
#include "keeper.h"
#include "limit.h"
#include "lock.h"
#include "options.h"
#include "os.h"
#include "purge.h"
#include "spans.h"
#include "street.h"

enum {
    KEEPER_SLICES = 64, /* dirty slices that are worth a thread that returns them: 4 MiB */
    /* Where there is no keeper a call purges a little more than was given back since the last did, from half a mebibyte to one
     * and a half; it may come to that twice. */
    SHARE_LEAST = 8,
    SHARE_MOST = 24,
    SETTLE_SLICES = 64, /* at the street's end that are unmapped where nobody takes any: 4 MiB */
    SETTLE_SPANS = 64, /* there, that are given up under one hold of the lock, */
    GIVE_WAY_MOST = 64 << 20, /* bytes that a call for a large block purges, which takes some 10 ms */
    FRESH_MOST = 2048, /* slices of fresh memory that are remembered: 128 MiB */
    FORGET_SLICES = 16384, /* of which the advice is forgotten under another: a gibibyte */
};

static struct {
    struct lock growing; /* taken before `lock`, by who makes more of the street usable: he asks the kernel meanwhile */
    struct lock opening; /* taken before both, by who makes more of it huge */
    struct lock lock; /* see arena_lock.h; protects what follows too */
    uint32_t fresh; /* slices that blocks of 4 MiB and more have taken of fresh memory since spend_fresh spent them */
    uint32_t usable; /* slices below this number are, from the first on; changed under both */
    _Atomic uint32_t given; /* slices given back since a share was purged; relaxed: about so many */
    uint32_t settled; /* where the free end began at the last look, 0 when it was short; under both */
    uint32_t populated; /* behind the slices brought in ahead */
    uint32_t window; /* slices brought in the last time */
    bool full; /* a span was unmapped, and not even a page could be had for it; under `growing` */
} arena;

void arena_lock(void) { lock_take(&arena.lock); }

void arena_unlock(void) { lock_free(&arena.lock); }

bool arena_open(void) {
    if (!street_open()) {
        return false;
    }
    arena.usable = street_first();
    spans_open();
    return true;
}

/* -- growing ------------------------------------------------------------------------------------------------- */

/* What has become usable, `slices` from `from` on, may be handed out. */
static void publish(uint32_t from, uint32_t slices) {
    arena_lock();
    if (from != arena.usable) {
        spans_skip(arena.usable, from);
    }
    arena.usable = from + slices;
    arena_unlock();
}

/* Makes the slices below `end` usable, or as many elsewhere where somebody else's mapping is in the way. The caller holds `growing`. */
static bool grow(uint32_t end) {
    uint32_t from = arena.usable;
    uint32_t slices = end == UINT32_MAX ? 0 : street_grow(&from, end - from);
    if (slices != 0) {
        publish(from, slices);
    }
    return slices != 0;
}

/* The last part of the street is for what slabs take at a time: a longer span can be a mapping of its own, a small block cannot. */
static uint32_t end_for(uint32_t slices) {
    enum { SHORT_MOST = 16, SHARE = 8 }; /* the longest slab has 16 */
    return slices <= SHORT_MOST ? street_limit() : street_limit() - (street_limit() - street_first()) / SHARE;
}

/* Whether only what slabs take may come from the front. */
static bool is_short_for(uint32_t slices) {
    arena_lock();
    bool is_short = spans_front() > end_for(slices);
    arena_unlock();
    return is_short;
}

/* A used span of what costs no memory yet: a free one, or from the front. 0 and where it would end when that is not usable yet. */
static uint32_t take_clean(uint32_t slices, uint32_t alignment, uint32_t *end) {
    uint32_t slice = spans_take(SPAN_CLEAN, slices, alignment);
    if (slice == 0 && (size_t)spans_front() + slices > end_for(slices)) {
        *end = UINT32_MAX;
        return 0;
    }
    return slice != 0 ? slice : spans_take_front(slices, alignment, arena.usable, end);
}

/* The end of a used span, from `slices` on, becomes free. It was not charged if it costs no memory. */
static void give_end(uint32_t slice, uint32_t slices, enum span_state state) {
    arena_lock();
    uint32_t rest = arena_span(slice)->slices - slices;
    if (rest != 0) {
        spans_cut(slice, slices);
        spans_give_uncharged(slice + slices, rest, state, 0);
    }
    arena_unlock();
}

/* A span of which the addresses are mapped no longer, or 0: `whole` slices are made usable again, and `slices` of them used. Where somebody else has
 * mapped memory it is nobody's from now on. So many slices are charged before and after, and the others are not. */
static uint32_t map_again(uint32_t whole, uint32_t slices, uint32_t alignment) {
    arena_lock();
    uint32_t slice = spans_take(SPAN_UNMAPPED, whole, alignment);
    arena_unlock();
    enum os_answer answer = slice == 0 ? OS_REFUSED : street_map_again(slice, whole);
    if (answer == OS_DONE) {
        give_end(slice, slices, SPAN_CLEAN);
        return slice;
    }
    if (slice != 0) {
        arena_lock();
        if (answer == OS_OCCUPIED) {
            spans_hold_used(slice);
        } else {
            spans_give_uncharged(slice, whole, SPAN_UNMAPPED, 0);
        }
        arena_unlock();
    }
    return 0;
}

/* With a few slices more, where there are, so that the kernel is seldom asked. The caller holds `growing`. */
static uint32_t take_unmapped(uint32_t slices, uint32_t alignment) {
    enum { LEAST = 32 };
    uint32_t slice = slices < LEAST ? map_again(LEAST, slices, alignment) : 0;
    return slice != 0 ? slice : map_again(slices, slices, alignment);
}

static uint32_t take_grown(uint32_t slices, uint32_t alignment) {
    uint32_t slice, end = 0;
    lock_take(&arena.growing);
    do {
        arena_lock();
        slice = take_clean(slices, alignment, &end);
        arena_unlock();
        slice = slice != 0 ? slice : take_unmapped(slices, alignment);
    } while (slice == 0 && grow(end));
    lock_free(&arena.growing);
    return slice;
}

/* Brings in what a program that grows will write next: [*from, and as many slices as it returns], under the lock to plan, to
 * be done without it. None while what was brought in before suffices, and never more than is in use already. It is in
 * nobody's way: fresh memory is handed out from there on, and whoever has it by then finds its pages as they were. */
static uint32_t plan_ahead(uint32_t slice, uint32_t *from) {
    enum {
        POPULATE_PART = 8
    }; /* of the room below a limit: these pages are not counted until they are taken, and others may take the room */
    uint32_t most = option_value(OPTION_POPULATE_KIB) / (SLICE_BYTES / 1024);
    if (spans_front() <= arena.populated) {
        return 0;
    }
    uint32_t window = (uint32_t)bits_min(bits_max(2 * (size_t)arena.window, 1), most);
    *from = (uint32_t)bits_max(slice, arena.populated);
    arena.window = window;
    window = (uint32_t)bits_min(window, limit_room() / POPULATE_PART >> SLICE_BITS);
    arena.populated = *from + (uint32_t)bits_min(window, spans_used());
    return arena.populated - *from;
}

/* Makes the slices below `end` usable, if the street goes on there. */
static bool grow_to(uint32_t end) {
    lock_take(&arena.growing);
    bool usable = end <= arena.usable || (end <= street_limit() && grow(end) && end <= arena.usable);
    lock_free(&arena.growing);
    return usable;
}

static void populate(uint32_t slice) {
    if (likely(option_value(OPTION_POPULATE_KIB) == 0)) {
        return;
    }
    uint32_t from = 0;
    arena_lock();
    uint32_t slices = plan_ahead(slice, &from);
    arena_unlock();
    if (slices > 0 && grow_to(from + slices)) {
        os_populate(arena_address(from), (size_t)slices << SLICE_BITS);
    }
}

/* -- huge pages ---------------------------------------------------------------------------------------------- */

/* Asks for huge pages in a span of the caller's. */
static void ask_for_huge(uint32_t slice, uint32_t slices) {
    arena_lock();
    struct huge_request request = huge_ask(slice, slices, arena.usable);
    arena_unlock();
    huge_tell(request);
}

/* Tries a chunk of the caller's in which huge pages were asked for. The first that was quick is looked at: whether it is one. */
static bool is_slow(void *chunk) {
    bool slow = huge_is_slow(chunk);
    if (!slow && arena_may_look()) {
        huge_look_if_given(chunk);
    }
    return slow;
}

/* Asks for huge pages in chunks of a fresh span, in the first of them alone at first. False where that one took long: the others are as
 * they were then, and not advised against, which would keep folios from them too. */
static bool ask_in_turn(uint32_t chunk, uint32_t slices) {
    ask_for_huge(chunk, CHUNK_SLICES);
    if (unlikely(is_slow(arena_address(chunk)))) {
        return false;
    }
    if (slices > CHUNK_SLICES) {
        ask_for_huge(chunk + CHUNK_SLICES, slices - CHUNK_SLICES);
    }
    return true;
}

/* A span of new chunks for it, and for what comes next. */
static uint32_t open_huge(uint32_t slices, bool *slow) {
    uint32_t ahead = huge_ahead();
    ahead = ahead > CHUNK_SLICES && street_comes_locked() ? 0 : ahead;
    uint32_t want = (uint32_t)bits_round_up(bits_max(slices, ahead), CHUNK_SLICES);
    uint32_t slice = take_grown(want, CHUNK_SLICES);
    if (slice != 0) {
        *slow = !ask_in_turn(slice, want);
        give_end(slice, slices, *slow ? SPAN_CLEAN : SPAN_HUGE);
    }
    return slice;
}

/* A span for an object, with huge pages in the chunks that it fills. 0 when memory is out. */
static uint32_t take_huge_but_tail(uint32_t slices, uint32_t alignment, bool *slow) {
    uint32_t slice = take_grown(slices, (uint32_t)bits_max(alignment, CHUNK_SLICES));
    if (slice != 0) {
        uint32_t whole = slices - slices % CHUNK_SLICES;
        *slow = !ask_in_turn(slice, whole);
        if (!*slow && whole != slices) {
            arena_lock();
            struct huge_request small = huge_keep_small(slice + whole);
            arena_unlock();
            huge_tell(small);
        }
    }
    return slice;
}

/* Whether address space is too dear for gaps before the chunks in which objects would begin: it was limited from the start, or there are
 * gaps enough. A limit may come at any time, and gaps are of no use to objects. */
static bool gaps_are_dear(void) {
    enum { SHARE = 4, ALWAYS = 1024 }; /* of what is in use; and 64 MiB of slices */
    return street_is_limited() || bins_slices(SPAN_CLEAN) > bits_max(spans_used() / SHARE, ALWAYS);
}

/* A span for a single object wherever one is free, with huge pages in the chunks that it fills. 0 when memory is out. */
static uint32_t take_packed(uint32_t slices, bool *slow) {
    uint32_t slice = take_grown(slices, 1);
    uint32_t chunk = spans_align(slice, CHUNK_SLICES), behind = huge_chunk(slice + slices);
    if (slice != 0 && (int32_t)(behind - chunk) > 0) {
        *slow = !ask_in_turn(chunk, behind - chunk);
    }
    return slice;
}

static uint32_t take_free_huge(uint32_t slices, uint32_t alignment) {
    arena_lock();
    uint32_t slice = spans_take(SPAN_HUGE, slices, alignment);
    arena_unlock();
    return slice;
}

/* An object that begins with a chunk: that of its tail has small pages, and what is free of it is so, too. Nothing there was written. */
static void make_tail_small(uint32_t slice, uint32_t slices) {
    uint32_t end = slice + slices;
    if (huge_chunk(end) != end) {
        arena_lock();
        struct huge_request small = huge_make_plain(end - 1, end);
        struct purge_rest rest = purge_hold_rest(small, end);
        arena_unlock();
        huge_tell(small);
        purge_rest(rest);
    }
}

/* A free-huge span becomes a clean one, and is so joined with those. False when there is none. */
static bool level_one(void) {
    arena_lock();
    uint32_t slice = bins_any(SPAN_HUGE);
    uint32_t slices = 0;
    struct huge_request plain = {0};
    if (slice != 0) {
        slices = arena_span(slice)->slices;
        (void)spans_hold(slice, slices);
        plain = huge_make_plain(slice, slice + slices);
    }
    arena_unlock();
    if (slice == 0) {
        return false;
    }
    huge_tell(plain);
    uint32_t begun = (uint32_t)bits_min(spans_align(slice, CHUNK_SLICES) - slice, slices);
    if (begun > 0) { /* what was written before it may have brought this in */
        (void)os_purge(arena_address(slice), (size_t)begun << SLICE_BITS);
    }
    arena_lock();
    spans_let_go(slice, slices, SPAN_CLEAN);
    arena_unlock();
    return true;
}

/* No huge pages for a while; what is free of them is for everybody. */
static void rest_from_huge(void) {
    enum { SPANS_MOST = 64 }; /* at a time; what is left is taken when nothing else is */
    arena_lock();
    huge_rest();
    arena_unlock();
    for (int i = 0; i < SPANS_MOST && level_one(); i++) {
    }
}

/* Tries the first chunk that begins in a span that was free and huge. If that takes too long, the rest of the span and all that is free do
 * without huge pages, and so does what comes in the next seconds. */
static void try_huge(uint32_t slice, uint32_t slices) {
    uint32_t chunk = spans_align(slice, CHUNK_SLICES);
    if (chunk >= slice + slices || likely(!is_slow(arena_address(chunk)))) {
        return; /* in a chunk that others have begun, or well */
    }
    arena_lock();
    bool more = chunk + CHUNK_SLICES < slice + slices;
    struct huge_request plain = more ? huge_make_plain(chunk + CHUNK_SLICES, slice + slices) : (struct huge_request){0};
    arena_unlock();
    huge_tell(plain);
    rest_from_huge();
}

/* One that is free is preferred to opening more while another thread does. */
static uint32_t take_opened(uint32_t slices, uint32_t alignment, bool *slow) {
    lock_take(&arena.opening);
    uint32_t slice = take_free_huge(slices, alignment);
    bool was_free = slice != 0;
    if (!was_free) {
        slice = open_huge(slices, slow);
    }
    lock_free(&arena.opening);
    if (was_free) {
        try_huge(slice, slices);
    }
    return slice;
}

static uint32_t take_huge(uint32_t slices, uint32_t alignment) {
    bool object = slices >= HUGE_OBJECT;
    uint32_t slice = take_free_huge(slices, object ? (uint32_t)bits_max(alignment, CHUNK_SLICES) : alignment);
    if (slice != 0) {
        if (object) {
            make_tail_small(slice, slices);
        }
        try_huge(slice, slices);
        return slice;
    }
    if (!object && alignment > CHUNK_SLICES) {
        return 0;
    }
    arena_lock();
    bool packed = object && alignment == 1 && gaps_are_dear();
    arena_unlock();
    bool slow = false;
    if (packed) {
        slice = take_packed(slices, &slow);
    } else if (object) {
        slice = take_huge_but_tail(slices, alignment, &slow);
    } else {
        slice = take_opened(slices, alignment, &slow);
    }
    if (unlikely(slow)) {
        rest_from_huge();
    }
    return slice;
}

bool arena_may_look(void) { return keeper_may_ask() && option_value(OPTION_HUGE_FROM_MIB) != HUGE_NEVER; }

static uint32_t slices_of(size_t bytes) { return (uint32_t)bits_min(bytes >> SLICE_BITS, UINT32_MAX); }

/* Whether there are pages at the start of that, as far as one call tells. */
static bool begins_written(const void *at, size_t bytes) {
    unsigned there = os_present(at, (unsigned)bits_min(bytes / os_page_bytes(), OS_PRESENT_MOST));
    return there != 0 && there != OS_PRESENT_UNKNOWN;
}

/* Whether a block was written behind what its like was. */
static bool exceeds(const char *at, size_t bytes) {
    enum { MARGIN = 2 }; /* slices: its span is longer by a part of that */
    arena_lock();
    uint32_t unwritten = huge_unwritten(arena_use_of_block(bytes), slices_of(bytes));
    arena_unlock();
    size_t behind = (size_t)(unwritten - bits_min(unwritten, MARGIN)) << SLICE_BITS;
    return behind != 0 && begins_written(at + (bytes - behind), behind);
}

void arena_look(const void *at, size_t bytes, enum watch watched) {
    if (watched == WATCH_NOTHING || !arena_may_look() ||
        bytes < (size_t)HUGE_OBJECT << SLICE_BITS || /* it may have been shortened */
        (watched == WATCH_END && !exceeds(at, bytes))) {
        return;
    }
    struct huge_sight sight = huge_look(at, bytes);
    if (watched == WATCH_END || (watched == WATCH_CHUNKS && sight.density == SIGHT_DENSE)) {
        sight.density = SIGHT_NONE; /* others may have written its start, and its chunks may have holes */
    }
    arena_lock();
    huge_saw(arena_use_of_block(bytes), slices_of(bytes), sight);
    arena_unlock();
}

/* A slab of that use, and its like. */
static void look_at_slab(uint32_t use, uint32_t slab) {
    uint32_t slices = arena_span(slab)->slices;
    struct huge_sight sight = {SIGHT_NONE, HUGE_ENDS};
    if (arena_may_look()) {
        sight = huge_look(arena_address(slab), (size_t)slices << SLICE_BITS);
    }
    arena_lock();
    huge_saw(use, slices, sight);
    arena_unlock();
}

bool arena_prefer_huge(void *at, size_t bytes, bool fresh) {
    size_t chunk_bytes = (size_t)CHUNK_SLICES << SLICE_BITS;
    uintptr_t chunk = bits_round_up((uintptr_t)at, chunk_bytes);
    uintptr_t behind = bits_round_down((uintptr_t)at + bytes, chunk_bytes);
    uint32_t slices = slices_of(bytes);
    if (bytes < (size_t)HUGE_OBJECT << SLICE_BITS || chunk >= behind) {
        return false;
    }
    arena_lock();
    uint32_t use = arena_use_of_block(bytes);
    bool wanted = huge_is_wanted(use, slices);
    if (wanted) {
        huge_spend(use, slices);
    }
    arena_unlock();
    if (!wanted) {
        return false;
    }
    os_prefer_huge((void *)chunk, behind - chunk);
    if (fresh && is_slow((void *)chunk)) {
        os_avoid_huge((void *)chunk, behind - chunk);
        rest_from_huge();
    }
    return true;
}

/* What the kernel does not take makes no room: more is tried, `most` bytes at most. Adds what it took to *taken; false when there is no more. */
static bool purge_up_to(size_t bytes, size_t most, size_t *taken) {
    bool more = true;
    for (size_t tried = 0; more && *taken < bytes && tried < most && !gate_is_awaited();) {
        size_t left = (bytes - *taken + SLICE_BYTES - 1) >> SLICE_BITS;
        uint32_t slices = purge_piece((uint32_t)bits_min(left, CHUNK_SLICES), false, taken);
        tried += (size_t)slices << SLICE_BITS;
        more = slices > 0;
    }
    return more;
}

/* Beyond a bound the keeper goes on while the caller writes. Without one nobody would before the next call, and all of it is purged here: the peak is
 * what a limit on memory counts. */
void arena_give_way(size_t bytes) {
    if (option_value(OPTION_RETAIN_MIB) == RETAIN_ALL_MIB) { /* what was touched once is to stay */
        return;
    }
    size_t taken = 0;
    if (!purge_up_to(bytes, GIVE_WAY_MOST, &taken) || taken >= bytes) {
        return;
    }
    purge_owe(bytes - taken);
    if (!keeper_hurry()) {
        (void)purge_up_to(bytes, bytes, &taken);
    }
}

/* Whether so many slices may be purged: no more than blocks have taken of fresh memory, so that such faults at most double, and end once the program
 * has all that it needs. */
static bool spend_fresh(uint32_t slices) {
    arena_lock();
    bool enough = arena.fresh >= slices;
    arena.fresh -= enough ? slices : 0;
    arena_unlock();
    return enough;
}

/* The last slices of a span that is taken again will stay unwritten, perhaps: what was written there before goes. */
static void purge_end(uint32_t slice, uint32_t unwritten) {
    uint32_t end = slice + arena_span(slice)->slices;
    uint32_t at = end - (uint32_t)bits_min(unwritten, GIVE_WAY_MOST >> SLICE_BITS);
    if (!arena_may_look() || option_value(OPTION_RETAIN_MIB) == RETAIN_ALL_MIB) {
        return;
    }
    bool done = true;
    if (begins_written(arena_address(at), (size_t)(end - at) << SLICE_BITS)) {
        done = spend_fresh(end - at);
        for (uint32_t next; done && at < end && !gate_is_awaited(); at = next) {
            next = (uint32_t)bits_min(huge_chunk(at) + CHUNK_SLICES, end);
            size_t bytes = (size_t)(next - at) << SLICE_BITS;
            done = arena_purge_pages(slice, arena_address(at), bytes, bytes);
        }
    }
    arena_span(slice)->watched = done ? WATCH_END : WATCH_NOTHING;
}

/* -- taking -------------------------------------------------------------------------------------------------- */

/* Everything free is made clean, and so joined, but for what other threads are purging just now. */
static void join_free(void) {
    (void)arena_purge_all();
    while (level_one()) {
    }
}

/* The last resort: what is free is joined, also what others are purging, until it is long enough. What the kernel would not take is asked for again
 * once, since threads that revive each other's go on for ever. */
static uint32_t take_joined(uint32_t slices, uint32_t alignment, bool *zero) {
    uint32_t slice, end;
    purge_revive(true);
    do {
        join_free();
        arena_lock();
        slice = take_clean(slices, alignment, &end);
        *zero = slice != 0;
        if (slice == 0 && (slice = spans_take(SPAN_KEPT, slices, alignment)) != 0) {
            limit_release((size_t)slices << SLICE_BITS); /* it was held already */
        }
        arena_unlock();
    } while (slice == 0 && purge_wait());
    return slice;
}

/* A fresh span of that use was taken, which is the caller's. It is watched if its like could have huge pages. */
static void watch(uint32_t use, uint32_t slice, bool huge) {
    bool block = use >= ARENA_FIRST_BLOCK;
    if (huge) {
        arena_span(slice)->watched = block ? WATCH_CHUNKS : WATCH_NOTHING;
        return;
    }
    arena_lock();
    bool available = huge_is_available(arena_span(slice)->slices);
    if (available && !block) {
        huge_watch_slab(use, slice);
    }
    arena_unlock();
    if (available && block) {
        arena_span(slice)->watched = WATCH_PAGES;
    }
}

/* -- the limit ------------------------------------------------------------------------------------------------ */

/* Looks for the limit of the process's control group. The kernel is asked for it, with no lock held. */
static OUT_OF_LINE void look_for_group(void) {
    if (limit_begin_look()) {
        limit_end_look(keeper_may_open() ? control_group_limit() : CONTROL_GROUP_UNKNOWN);
    }
}

bool arena_charge(size_t bytes) {
    if (limit_look_is_due()) {
        look_for_group();
    }
    if (likely(!limit_is_set())) {
        limit_charge(bytes);
        return true;
    }
    if (bytes > limit_own()) { /* no purge makes room for that */
        return false;
    }
    size_t taken = 0, lack = limit_lack(bytes);
    if (lack > 0) {
        limit_note_met();
        (void)purge_up_to(lack, SIZE_MAX, &taken);
    }
    bool charged = limit_take(bytes);
    size_t owed = charged && taken < lack ? limit_owe(lack - taken) : 0;
    if (owed != 0) {
        arena_reclaim(owed);
    }
    return charged;
}

/* The limit does not count the rest of a huge page, which comes into memory too: none is asked for near a limit. */
static bool has_room_for_huge(uint32_t slices) {
    enum { TIMES = 8 };
    return limit_room() >> SLICE_BITS >= bits_max(slices, (size_t)TIMES * CHUNK_SLICES);
}

static uint32_t take_charged(uint32_t slices, uint32_t alignment, uint32_t use, bool *zero) {
    uint32_t slice = 0, end;
    arena_lock();
    bool huge = use != ARENA_NO_USE && has_room_for_huge(slices) && huge_is_wanted(use, slices);
    if (huge) {
        huge_spend(use, slices);
    } else {
        slice = take_clean(slices, alignment, &end);
    }
    arena_unlock();
    if (huge) {
        slice = take_huge(slices, alignment);
    }
    if (slice == 0) {
        slice = take_grown(slices, alignment);
    }
    if (slice == 0) {
        slice = take_free_huge(slices, alignment);
        huge = huge || slice != 0;
    }
    if (slice == 0 &&
        !is_short_for(slices)) { /* out of street or memory: dirty and clean neighbours may be long enough together */
        slice = take_joined(slices, alignment, zero);
    }
    if (slice != 0) {
        arena_span(slice)->watched = WATCH_NOTHING;
    }
    if (slice != 0 && use != ARENA_NO_USE && *zero) {
        if (arena_may_look()) {
            watch(use, slice, huge);
        }
        if (!huge) {
            populate(slice);
        }
    }
    return slice;
}

uint32_t arena_take(uint32_t slices, uint32_t alignment, uint32_t use, bool *zero) {
    if (slices > street_limit() || alignment > street_limit()) { /* bins are for lengths below that */
        return 0;
    }
    arena_lock();
    bool block = use >= ARENA_FIRST_BLOCK;
    uint32_t slice = spans_take(SPAN_DIRTY, slices, alignment);
    uint32_t unwritten = slice != 0 && block ? huge_unwritten(use, slices) : 0;
    slice = slice != 0 ? slice : spans_take(SPAN_KEPT, slices, alignment);
    uint32_t slab = huge_slab_to_look_at(use);
    bool gives_way = slice == 0 && block && huge_gives_way(use);
    if (slice == 0 && block) {
        arena.fresh = (uint32_t)bits_min((size_t)arena.fresh + slices, FRESH_MOST);
    }
    arena_unlock();
    if (unlikely(slab != 0)) {
        look_at_slab(use, slab);
    }
    *zero = slice == 0;
    if (slice != 0) {
        arena_span(slice)->watched = WATCH_NOTHING;
        if (unlikely(unwritten != 0)) {
            purge_end(slice, unwritten);
        }
        return slice;
    }
    if (!arena_charge((size_t)slices << SLICE_BITS)) {
        return 0;
    }
    purge_regret((size_t)slices << SLICE_BITS);
    slice = take_charged(slices, alignment, use, zero);
    if (unlikely(slice == 0)) {
        limit_release((size_t)slices << SLICE_BITS);
    } else if (unlikely(gives_way)) {
        arena_give_way((size_t)slices << SLICE_BITS);
    }
    return slice;
}

/* -- giving -------------------------------------------------------------------------------------------------- */

/* A span was given back. */
static void wish_for_keeper(void) {
    purge_expect();
    if (ages_slices() >= KEEPER_SLICES) {
        keeper_wish();
    }
}

/* A used span becomes dirty; `purged` of its pages are clean. The caller holds the arena's lock. */
static void give_dirty(uint32_t slice, uint32_t purged) {
    uint32_t slices = arena_span(slice)->slices;
    arena_tag(slice, slices, TAG_NONE);
    spans_give_uncharged(slice, slices, SPAN_DIRTY, purged); /* these pages were not held before either */
    atomic_fetch_add_explicit(&arena.given, slices, memory_order_relaxed);
    wish_for_keeper();
}

bool arena_give(uint32_t slice) {
    arena_lock();
    bool used = arena_span(slice)->state == SPAN_USED;
    if (likely(used)) {
        give_dirty(slice, 0);
    }
    arena_unlock();
    return used;
}

void arena_give_slab(uint32_t slice) {
    arena_lock();
    uint32_t slices = arena_span(slice)->slices, purged = arena_span(slice)->clean_pages;
    huge_slab_is_gone(arena_use_of_slab(arena_span(slice)->size_class), slice);
    if (purged * os_page_bytes() == (size_t)slices << SLICE_BITS) { /* its chunk was made plain for that */
        (void)spans_forget_purged(slice, slices);
        arena_tag(slice, slices, TAG_NONE);
        spans_give_uncharged(slice, slices, SPAN_CLEAN, 0);
    } else {
        give_dirty(slice, purged);
    }
    arena_unlock();
}

/* Held, the span is let go chunk by chunk: whole ones that are huge remain so. */
static void let_go_clean(uint32_t slice, uint32_t slices) {
    uint32_t end = slice + slices;
    while (slice < end) {
        uint32_t chunk = huge_chunk(slice);
        uint32_t next = (uint32_t)bits_min(chunk + CHUNK_SLICES, end);
        bool whole = chunk == slice && next == chunk + CHUNK_SLICES;
        spans_let_go(slice, next - slice, whole && huge_is_huge(slice) ? SPAN_HUGE : SPAN_CLEAN);
        slice = next;
    }
}

void arena_give_clean(uint32_t slice) {
    arena_lock();
    uint32_t slices = arena_span(slice)->slices;
    uint32_t end = slice + slices;
    arena_tag(slice, slices, TAG_NONE);
    spans_hold_used(slice);
    /* The chunks that it only begins or ends in; a whole one is left as it is. */
    struct huge_request first =
        huge_chunk(slice) != slice ? huge_make_plain(slice, slice + 1) : (struct huge_request){0};
    struct huge_request last = huge_chunk(end) != end ? huge_make_plain(end - 1, end) : (struct huge_request){0};
    arena_unlock();
    huge_tell(first);
    huge_tell(last);
    arena_lock();
    let_go_clean(slice, slices);
    arena_unlock();
}

/* Of the chunks that lie wholly in a span whose addresses are mapped no longer. The caller holds the arena's lock. */
static void forget_advice(uint32_t slice, uint32_t slices) {
    uint32_t first = spans_align(slice, CHUNK_SLICES), behind = huge_chunk(slice + slices);
    if ((int32_t)(behind - first) > 0) {
        huge_forget(first, behind);
    }
}

void arena_abandon(uint32_t slice, size_t bytes) {
    uint32_t slices = arena_span(slice)->slices;
    size_t rest = ((size_t)slices << SLICE_BITS) - bytes;
    if (rest > 0) {
        os_unmap((char *)arena_address(slice) + bytes, rest);
    }
    arena_lock();
    forget_advice(slice, slices);
    spans_give_uncharged(slice, slices, SPAN_UNMAPPED, 0);
    arena_unlock();
}

bool arena_purge_pages(uint32_t slice, void *at, size_t bytes, size_t unclean) {
    uint32_t end = slice + arena_span(slice)->slices, last = arena_slice((char *)at + bytes - 1);
    arena_lock();
    struct huge_request plain = huge_make_plain(arena_slice(at), last + 1);
    struct purge_rest rest = huge_chunk(last) == huge_chunk(end) ? purge_hold_rest(plain, end) : (struct purge_rest){0};
    arena_unlock();
    huge_tell(plain);
    purge_rest(rest);
    if (!os_purge(at, bytes)) {
        return false;
    }
    purge_count(unclean);
    return true;
}

/* A share: as much as is given back by most calls, so that what is due does not pile up. */
static void purge_share(void) {
    uint32_t tried = 1;
    size_t bytes = 0;
    size_t given = atomic_exchange_explicit(&arena.given, 0, memory_order_relaxed);
    for (size_t left = bits_max(bits_min(given + given / 4, SHARE_MOST), SHARE_LEAST); left > 0 && tried > 0;
         left -= tried) {
        tried = purge_due_piece((uint32_t)left, &bytes);
    }
}

void arena_age(void) {
    if ((purge_is_due() || purge_is_under_way()) && !keeper_hurry()) {
        purge_share();
    }
}

bool arena_keep(size_t *bytes) { return purge_due_piece(CHUNK_SLICES, bytes) > 0; }

bool arena_has_more(void) { return ages_slices() != 0; }

bool arena_may_hold(size_t bytes) {
    arena_lock();
    size_t slices =
        (size_t)bins_slices(SPAN_DIRTY) + bins_slices(SPAN_KEPT) + bins_slices(SPAN_CLEAN) + bins_slices(SPAN_HUGE);
    arena_unlock();
    return bytes >> SLICE_BITS < slices;
}

void arena_revive(bool all) {
    purge_revive(all);
    if (all) {
        purge_doubt();
    }
}

/* What lies behind the front is usable no longer: nobody has any of it from now on. The caller holds `growing` and the arena's lock, which
 * is given back here, before the kernel is asked. The advice is forgotten piece by piece, since others wait for the lock: it is read only
 * under `growing`, and from the end down no piece adds an edge. */
static void give_end_up(void) {
    uint32_t usable = arena.usable, front = spans_front();
    arena.usable = front;
    arena.populated = (uint32_t)bits_min(arena.populated, front);
    arena_unlock();
    for (uint32_t end = usable; end != front;) {
        uint32_t piece = end - front > FORGET_SLICES ? end - FORGET_SLICES : front;
        arena_lock();
        huge_forget(piece, end);
        arena_unlock();
        end = piece;
    }
    if (front != usable) {
        street_shrink(front, usable);
    }
}

/* What was never handed out there goes with what is free: before a span with huge pages may lie one without, and the other way round. */
size_t arena_retreat(uint32_t least, bool kept) {
    lock_take(&arena.growing);
    arena_lock();
    kept = kept && !street_is_reserved(); /* what is reserved would stay as it is */
    uint32_t had = bins_slices(SPAN_KEPT);
    bool is_long = arena.usable - spans_clean_end(UINT32_MAX, kept) >= least;
    while (is_long && spans_retreat(kept)) {
    }
    size_t bytes = (size_t)(had - bins_slices(SPAN_KEPT)) << SLICE_BITS;
    purge_count(bytes);
    if (is_long) {
        give_end_up();
    } else {
        arena_unlock();
    }
    lock_free(&arena.growing);
    return bytes;
}

/* Where the street's free end begins, if it is long enough to be given up; else 0. The caller holds the arena's lock. */
static uint32_t long_end(void) {
    uint32_t end = spans_clean_end(SETTLE_SPANS, false);
    return arena.usable - end >= SETTLE_SLICES ? end : 0;
}

bool arena_settle(void) {
    if (street_is_reserved()) { /* its addresses stay ours all the same */
        return false;
    }
    lock_take(&arena.growing);
    arena_lock();
    uint32_t end = long_end();
    bool rests = end != 0 && end <= arena.settled;
    for (int i = 0; rests && i < SETTLE_SPANS && spans_retreat(false); i++) {
    }
    bool more = rests ? spans_clean_end(1, false) != spans_front() : end != 0;
    arena.settled = rests ? 0 : end;
    if (rests) {
        give_end_up();
    } else {
        arena_unlock();
    }
    lock_free(&arena.growing);
    return more;
}

/* A free span of that kind that has so many slices is unmapped; returns how many it had. 0 when there is none, or the kernel refuses to split a mapping.
 * The caller holds `growing`. */
static uint32_t unmap_one(enum span_state state, uint32_t least) {
    arena_lock();
    uint32_t slice = bins_find(state, least);
    uint32_t slices = slice == 0 ? 0 : arena_span(slice)->slices;
    if (slice != 0) {
        (void)spans_hold(slice, slices);
        forget_advice(slice, slices);
    }
    arena_unlock();
    if (slice == 0) {
        return 0;
    }
    size_t bytes = (size_t)slices << SLICE_BITS;
    /* unseen by memory hooks: they have seen it purged, or that the kernel refused to */
    bool unmapped = os_unmap_unseen(arena_address(slice), bytes);
    purge_count(unmapped && state == SPAN_KEPT ? bytes : 0);
    arena_lock();
    spans_let_go(slice, slices, unmapped ? SPAN_UNMAPPED : state);
    arena_unlock();
    return unmapped ? slices : 0;
}

/* Each may cost a mapping, of which a process has 65,530. */
static uint32_t holes_left(void) {
    enum { HOLES_MOST = 8192 };
    arena_lock();
    uint32_t holes = bins_spans(SPAN_UNMAPPED);
    arena_unlock();
    return HOLES_MOST - (uint32_t)bits_min(holes, HOLES_MOST);
}

/* Whether what is unmapped can be had again. Not under a limit that was lowered below what is mapped; one that is used up to the last page looks alike
 * until a span is unmapped. Where many are free, so that one less does not matter, that is tried once, until there is room again. The caller holds
 * `growing`. */
static bool unmapping_helps(void) {
    enum { SPANS_LEAST = 16 };
    if (os_has_room(os_page_bytes())) {
        arena.full = false;
        return true;
    }
    arena_lock();
    bool many = bins_spans(SPAN_CLEAN) + bins_spans(SPAN_KEPT) >= SPANS_LEAST;
    arena_unlock();
    if (arena.full || !many || holes_left() == 0 || (unmap_one(SPAN_CLEAN, 1) == 0 && unmap_one(SPAN_KEPT, 1) == 0)) {
        return false;
    }
    arena.full = !os_has_room(os_page_bytes());
    return !arena.full;
}

static bool has_mapped_free(void) {
    arena_lock();
    bool some = bins_spans(SPAN_CLEAN) + bins_spans(SPAN_KEPT) > 0;
    arena_unlock();
    return some;
}

/* What is free counts against a limit on address space, whoever needs some: long spans are unmapped first, and mapped again when they are used. */
static void unmap_free(void) {
    enum { SPANS_MOST = 1024 }; /* in one call */
    if (street_is_reserved()) {
        return;
    }
    lock_take(&arena.growing);
    uint32_t left = has_mapped_free() && unmapping_helps() ? (uint32_t)bits_min(SPANS_MOST, holes_left()) : 0;
    for (uint32_t least = 1u << 14; least > 0; least /= 2) {
        while (left > 0 && (unmap_one(SPAN_CLEAN, least) != 0 || unmap_one(SPAN_KEPT, least) != 0)) {
            left--;
        }
    }
    lock_free(&arena.growing);
}

bool arena_unmap_kept(size_t *bytes) {
    if (street_is_reserved()) {
        return false;
    }
    lock_take(&arena.growing);
    uint32_t slices = holes_left() == 0 ? 0 : unmap_one(SPAN_KEPT, 1);
    lock_free(&arena.growing);
    *bytes += (size_t)slices << SLICE_BITS;
    return slices != 0;
}

void arena_make_room(void) {
    purge_revive(true);
    do {
        join_free();
    } while (purge_wait());
    (void)arena_retreat(1, true);
    unmap_free();
}

bool arena_purge_piece(void) {
    size_t bytes = 0;
    return purge_piece(CHUNK_SLICES, false, &bytes) > 0;
}

bool arena_await_purge(void) { return purge_wait(); }

void arena_await_growth(void) {
    lock_take(&arena.growing);
    lock_free(&arena.growing);
}

bool arena_purge_some(size_t *bytes) { return purge_piece(CHUNK_SLICES, true, bytes) > 0; }

size_t arena_purge_all(void) {
    size_t bytes = 0;
    while (arena_purge_some(&bytes)) {
    }
    return bytes;
}

/* -- resizing ------------------------------------------------------------------------------------------------ */

static bool extend_there(uint32_t slice, uint32_t slices, uint32_t *front) {
    arena_lock();
    *front = spans_front();
    uint32_t end = (uint32_t)bits_min(arena.usable, end_for(slices));
    bool extended = spans_extend(slice, slices - arena_span(slice)->slices, end);
    arena_unlock();
    return extended;
}

/* True when the span ends at the front, or free ones behind it do, and memory was made usable there. */
static bool grow_behind(uint32_t slice, uint32_t slices) {
    uint32_t end = slice + slices;
    lock_take(&arena.growing);
    arena_lock();
    uint32_t next = slice + arena_span(slice)->slices;
    bool at_front = spans_end_of_free(next) == spans_front();
    bool lacks = at_front && end > arena.usable && end > slice && end <= end_for(slices);
    arena_unlock();
    bool grown = lacks && grow(end);
    lock_free(&arena.growing);
    return grown;
}

bool arena_extend(uint32_t slice, uint32_t slices) {
    uint32_t front, had = slice + arena_span(slice)->slices;
    size_t more = (size_t)(slices - arena_span(slice)->slices) << SLICE_BITS;
    if (!arena_charge(more)) {
        return false;
    }
    bool extended = extend_there(slice, slices, &front);
    if (!extended && grow_behind(slice, slices)) {
        extended = extend_there(slice, slices, &front);
    }
    if (!extended) {
        limit_release(more);
    } else {
        purge_regret(more);
    }
    if (extended && had != front) { /* what it was given may have been written before */
        arena_span(slice)->watched = WATCH_NOTHING;
    }
    if (extended && slice + slices > front && slices >= HUGE_OBJECT) {
        uint32_t use = arena_use_of_block((size_t)slices << SLICE_BITS);
        arena_lock();
        bool huge = huge_is_wanted(use, slices);
        if (huge) {
            huge_spend(use, slices);
        }
        arena_unlock();
        uint32_t chunk = spans_align(front, CHUNK_SLICES), behind = huge_chunk(slice + slices);
        if (huge && (int32_t)(behind - chunk) > 0) {
            ask_for_huge(chunk, behind - chunk);
            arena_span(slice)->watched = arena_span(slice)->watched == WATCH_NOTHING ? WATCH_NOTHING : WATCH_CHUNKS;
        }
    }
    return extended;
}

void arena_shorten(uint32_t slice, uint32_t slices) {
    arena_tag(slice + slices, arena_span(slice)->slices - slices, TAG_NONE);
    give_end(slice, slices, SPAN_DIRTY);
    arena_lock();
    wish_for_keeper();
    arena_unlock();
}

/* -- asking -------------------------------------------------------------------------------------------------- */

void arena_tag(uint32_t slice, uint32_t slices, uint32_t tag) {
    uint32_t *tags = (uint32_t *)window.base;
    for (uint32_t i = 0; i < slices; i++) {
        __atomic_store_n(&tags[slice + i], tag, __ATOMIC_RELAXED); /* see tag_of */
    }
}

/* Behind the front, where it has moved back. */
static bool was_unmapped(const void *pointer, size_t *bytes) {
    arena_lock();
    size_t front = (size_t)spans_front() << SLICE_BITS, farthest = (size_t)spans_farthest() << SLICE_BITS;
    arena_unlock();
    *bytes = farthest - front;
    return (uintptr_t)pointer - window.base < farthest; /* a pointer below the street is far above it here */
}

bool arena_was_freed(const void *pointer, size_t *bytes) {
    if ((uintptr_t)pointer - window.base >=
        __atomic_load_n(&window.extent, __ATOMIC_RELAXED)) { /* relaxed: see tag_of */
        return was_unmapped(pointer, bytes);
    }
    arena_lock();
    uint32_t slice = (uint32_t)bits_max(arena_slice(pointer), street_first());
    while (slice > street_first() && arena_span(slice)->state == SPAN_UNUSED) {
        slice--;
    }
    const struct span *span = arena_span(slice);
    bool freed = slice <= arena_slice(pointer) && span->state != SPAN_UNUSED && span->state != SPAN_USED;
    *bytes = (size_t)span->slices << SLICE_BITS;
    arena_unlock();
    return freed;
}

uint32_t arena_first_slice(void) { return street_first(); }

void arena_figures(struct arena_figures *figures) {
    arena_lock();
    size_t slices = spans_front() - street_first();
    *figures = (struct arena_figures){
        .reserved = (size_t)street_limit() << SLICE_BITS,
        .extent = slices << SLICE_BITS,
        .usable = (size_t)(arena.usable - street_first()) << SLICE_BITS,
        .unmapped = (size_t)bins_slices(SPAN_UNMAPPED) << SLICE_BITS,
        .used = (size_t)spans_used() << SLICE_BITS,
        .dirty = ages_bytes() + ((size_t)bins_slices(SPAN_KEPT) << SLICE_BITS),
        .dirty_spans = (size_t)bins_spans(SPAN_DIRTY) + bins_spans(SPAN_KEPT),
        /* of what was ever handed out: rows beyond are usable, and untouched */
        .bookkeeping = slices * (sizeof(uint32_t) + sizeof(struct span) + BITMAP_BYTES),
        .purged = purge_total(),
    };
    arena_unlock();
}

void arena_after_fork(void) {
    lock_reset(&arena.lock);
    lock_reset(&arena.growing);
    lock_reset(&arena.opening);
    street_after_fork();
    limit_after_fork();
}
