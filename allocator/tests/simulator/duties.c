#include "duties.h"

#include <string.h>
#include <sys/mman.h>

#include "ages.h"
#include "auditor.h"
#include "bins.h"
#include "fibers.h"
#include "gate.h"
#include "heap_inside.h"
#include "keeper.h"
#include "options.h"
#include "os.h"
#include "program.h"
#include "purge.h"
#include "refaults.h"
#include "scheduler.h"
#include "seams.h"
#include "shelter.h"
#include "spans.h"
#include "street.h"
#include "thread_inside.h"
#include "world.h"

enum {
    HEAPS_MOST = 16,
    LATE_MS = 100, /* for what may have come due meanwhile */
    RESTS = 3 * REFAULTS_LONGEST, /* looks more where slabs rest for longer than from one to the next */
    LOOKS = 4, /* after so many without a call nothing is left for the keeper, but what may stay */
};

/* What a thread's slow path may change. */
struct sight {
    const struct thread_cache *cache; /* the stepping thread's */
    const struct heap *heap; /* NULL without a cache */
    uint32_t visits, exchanges, looked, wished, season, caches;
    uint8_t sweep;
    bool excess; /* the cache has too much */
    uint64_t loaded[2]; /* a bit for each of its slots */
    unsigned given;  /* of its slots: loaded, and only given to */
    size_t mapped; /* bytes of the street that are handed out, or free and not unmapped */
    size_t room, parked, slab_bytes, purged, orphans; /* orphans: their loaded slots, and themselves */
    unsigned lost,
        lost_seen; /* caches whose threads are gone, and those that were not used since the keeper's last look */
    unsigned nulls, heaps, empty; /* empty: slabs of several slices without a block in use */
    uint64_t refused, now;
    struct {
        uint32_t threads, events, due, low, magazines;
        uint64_t settled;
        size_t traffic, free_bytes, depot_bytes;
    } of[HEAPS_MOST];
};

static struct sight before;
static bool whole;
static uint64_t turns; /* others', before the step: who worked beside it may have undone what it did */
static bool keeper; /* it sleeps until its next look */
static bool small, span; /* the step's block is a slab's, or a large span */

static struct {
    unsigned looks, clean; /* clean: those in which nothing was dirty, and the street's end stayed where it was */
    uint32_t usable;
    uint64_t refused;
} quiet; /* the keeper's looks since anything else was done */
/* A span was given back since the last look, so that what the kernel would not take is asked for again; and refusals until then. */
static struct {
    bool since_look;
    uint64_t refused;
} given;

/* What others were purging when the program asked for memory to be given back. */
uint32_t seam_purges_begun;
static struct {
    bool asked;
    uint32_t begun;
    uint64_t refused;
} trim;

/* -- what is seen -------------------------------------------------------------------------------------------- */

static uint32_t tag_there(const void *at) {
    uint32_t tag = TAG_NONE;
    return tag_of(at, &tag) ? tag : TAG_NONE;
}

static bool is_slab_block(const void *at) { return at != NULL && tag_is_slab(tag_there(at)); }

static bool is_span(const void *at) { return at != NULL && tag_there(at) == TAG_LARGE; }

static const struct thread_view *view_of(const struct step *step) {
    return fiber_local(&fibers[step->verb < VERBS_OF_THREADS ? step->thread : 0], seam_view());
}

static unsigned loaded_slots(const struct thread_cache *cache, bool given) {
    unsigned slots = 0;
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        slots += cache->slots[slot].top != VOID_TOP && !(given && cache->slots[slot].taken);
    }
    return slots;
}

static void see_slots(struct sight *sight, const struct thread_cache *cache) {
    _Static_assert(SLOT_COUNT <= 128, "two words");
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        sight->loaded[slot / 64] |= (uint64_t)(cache->slots[slot].top != VOID_TOP) << slot % 64;
    }
    sight->given = loaded_slots(cache, true);
    sight->excess = seam_has_too_much(cache);
}

static void see_heaps(struct sight *sight) {
    sight->heaps = heap_count();
    for (unsigned i = 0; i < sight->heaps && i < HEAPS_MOST; i++) {
        const struct heap *heap = heap_numbered(i);
        sight->slab_bytes += heap->slab_bytes;
        sight->of[i].threads = heap_threads(i);
        sight->of[i].events = heap->events;
        sight->of[i].settled = heap->settled;
        sight->of[i].traffic = heap->traffic;
        sight->of[i].free_bytes = heap->free_bytes;
        sight->of[i].depot_bytes = heap->depot_bytes;
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            sight->of[i].due += heap->shelf[class].depot_due;
            sight->of[i].low += heap->shelf[class].depot_low;
            sight->of[i].magazines += heap->shelf[class].depot_count;
        }
    }
}

static unsigned empty_slabs(uint32_t slices_least) {
    unsigned empty = 0;
    for (uint32_t slice = street_first(); slice < spans_front(); slice += arena_span(slice)->slices) {
        const struct span *span = arena_span(slice);
        empty += auditor_has_slab(slice) && span->slices >= slices_least && span->free_blocks == span->blocks;
    }
    return empty;
}

static void see(struct sight *sight, const struct step *step) {
    memset(sight, 0, sizeof *sight);
    const struct thread_cache *cache = view_of(step)->cache;
    sight->cache = cache;
    if (cache != seam_no_cache()) {
        sight->heap = cache->heap;
        sight->visits = cache->visits;
        sight->exchanges = cache->exchanges;
        sight->looked = cache->looked;
        sight->wished = cache->wished;
        sight->season = cache->season;
        sight->sweep = cache->sweep;
        see_slots(sight, cache);
    }
    for (const struct thread_cache *any = registry.alive; any != NULL; any = any->next) {
        sight->orphans += any->orphan != 0 ? 1 + loaded_slots(any, false) : 0;
        bool lost =
            any->orphan == 0 && any->busy == 0 && any->thread != 0 && os_thread_is_gone(any->process, any->thread);
        sight->lost += lost;
        sight->lost_seen += lost && any->visits == any->seen;
    }
    for (const struct thread_cache *any = registry.left; any != NULL; any = any->next) {
        sight->orphans += 1 + loaded_slots(any, false);
    }
    for (void *block = shelter_parked; block != NULL; block = *(void **)block) {
        sight->parked++;
    }
    see_heaps(sight);
    sight->empty = step->verb == VERB_FREE ? empty_slabs(2) : 0;
    sight->mapped = (size_t)(spans_front() - street_first() - bins_slices(SPAN_UNMAPPED)) << SLICE_BITS;
    sight->caches = registry.count;
    sight->room = registry.room;
    sight->purged = purge_total();
    sight->refused = world_refused();
    sight->now = os_milliseconds();
    sight->nulls = program_nulls;
}

/* -- when memory is to come back ----------------------------------------------------------------------------- */

static bool is_clean_page(uint32_t slab, size_t page) {
    size_t in_slice = SLICE_BYTES / os_page_bytes();
    return (arena_span(slab + (uint32_t)(page / in_slice))->clean >> (page % in_slice) & 1) != 0;
}

/* Blocks [first, end) are free. */
static bool are_free(const struct span *span, size_t first, size_t end) {
    for (size_t number = first; number < end; number++) {
        if ((span->bitmap[number / 64] >> (number % 64) & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* Pages on which no block is in use are clean, or were never in memory, and what is clean is not resident. What is left over behind the last block is as clean as it
 * happens to be: a piece is so short here that it may end with that block. */
static void check_pages(uint32_t slab) {
    const struct span *span = arena_span(slab);
    size_t page = os_page_bytes(), size = class_bytes[span->size_class];
    size_t pages = span->slices * (SLICE_BYTES / page);
    unsigned char resident[16 * SLICE_BYTES / 4096];
    EXPECT_HERE(pages <= sizeof resident && mincore(arena_address(slab), pages * page, resident) == 0);
    for (size_t p = 0; p < pages && (p + 1) * page <= span->blocks * size; p++) {
        size_t first = p * page / size;
        size_t end = bits_min((p * page + page - 1) / size + 1, span->blocks);
        bool clean = is_clean_page(slab, p);
        bool never_was = first >= span->fresh && (resident[p] & 1) == 0;
        CHECK(clean || never_was || !are_free(span, first, end),
              "kept: page %zu of a slab of %zu bytes, whose blocks are all free", p, size);
        CHECK(!clean || (resident[p] & 1) == 0, "kept: page %zu of a slab of %zu bytes counts as purged, and is there",
              p, size);
    }
}

static void check_slabs(bool empty_ones_too) {
    for (uint32_t slice = street_first(); slice < spans_front(); slice += arena_span(slice)->slices) {
        if (auditor_has_slab(slice)) {
            check_pages(slice);
        }
    }
    CHECK(!empty_ones_too || empty_slabs(1) == 0, "kept: a slab without a block in use");
}

static void check_depots(const char *when) {
    for (unsigned i = 0; i < heap_count(); i++) {
        CHECK(heap_numbered(i)->depot_bytes == 0, "kept: depots have %zu bytes, %s", heap_numbered(i)->depot_bytes,
              when);
    }
}

/* Others' hands reach what the thread only gives, and all its other magazines. */
static void check_relieved(const struct thread_cache *own, const char *kind, const char *when) {
    for (const struct thread_cache *cache = registry.alive; cache != NULL; cache = cache->next) {
        for (unsigned slot = 1; slot < SLOT_COUNT && cache != own; slot++) {
            const struct cache_class *magazines = &cache->slots[slot];
            bool some = magazines->top != VOID_TOP && !magazines->taken && magazine_count(magazines->top) != 0;
            CHECK(magazines->previous == NULL && !some, "%s: a cache has blocks in slot %u that others might take, %s",
                  kind, slot, when);
        }
    }
}

static void check_emptied(const struct thread_cache *cache, const char *kind, const char *when) {
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        CHECK(cache->slots[slot].top == VOID_TOP, "%s: the caller's cache has a magazine in slot %u, %s", kind, slot,
              when);
    }
}

/* What nobody uses at the street's end is unmapped. */
static void check_end(const char *when) {
    uint32_t end = spans_clean_end(UINT32_MAX, false);
    CHECK(seam_arena_usable() - end < seam_settle_slices() || street_is_reserved(),
          "kept: %u slices at the street's end, %s", seam_arena_usable() - end, when);
}

/* -- the keeper ---------------------------------------------------------------------------------------------- */

static void check_look(const struct sight *now) {
    static const char when[] = "the keeper has looked";
    CHECK(!seam_purge_is_overdue(LATE_MS), "kept: what is due is not purged, %s", when);
    CHECK(now->parked == 0, "kept: %zu blocks are parked, %s", now->parked, when);
    CHECK(now->orphans == 0 || now->orphans < before.orphans, "kept: an orphan is as it was, %s", when);
    CHECK(now->lost <= before.lost - before.lost_seen, "kept: %u caches of threads that are gone, %s", now->lost, when);
    CHECK(!given.since_look || given.refused != now->refused || bins_slices(SPAN_KEPT) == 0,
          "kept: what the kernel would not take is not asked for, %s", when);
    given.since_look = false;
    if (quiet.looks == 0) {
        quiet.refused = before.refused;
    }
    quiet.looks = quiet.refused == now->refused ? quiet.looks + 1 : 0;
    bool shorter = quiet.usable != seam_arena_usable();
    quiet.clean = quiet.looks > 1 && ages_slices() == 0 && !shorter ? quiet.clean + 1 : 0;
    quiet.usable = seam_arena_usable();
    if (quiet.looks >= LOOKS) {
        check_relieved(NULL, "kept", "however often the keeper looks");
        check_depots("however often the keeper looks");
    }
    /* Slabs rest, and are then looked at twice: also one that was made for somebody who then found another's block. What was refused once is asked
     * for when more is free. */
    if (quiet.looks >= LOOKS + (seam_patience() > 1 ? RESTS : 0)) {
        CHECK(empty_slabs(2) == 0,
              "kept: a slab of several slices without a block in use, however often the keeper looks");
        if (now->refused == 0) {
            check_slabs(false);
        }
    }
    if (quiet.clean >= LOOKS && now->refused == 0) { /* what is dirty ages first, and the end goes piece by piece */
        check_end("however often the keeper looks");
    }
    if (!world_has_keeper() && now->refused == 0) {
        CHECK(ages_slices() == 0, "kept: %u slices are dirty, and the keeper ends", ages_slices());
        check_depots("and the keeper ends");
        check_end("and the keeper ends");
        check_slabs(false);
    }
}

/* -- a thread ------------------------------------------------------------------------------------------------ */

/* Slots loaded now, and not seen by the last sweep as they are. */
static unsigned unseen_slots(const struct thread_cache *cache) {
    unsigned unseen = 0;
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        const struct cache_class *magazines = &cache->slots[slot];
        unseen += magazines->top != VOID_TOP && magazines->last_visits != magazines->visits;
    }
    return unseen;
}

static void check_excess(const struct sight *now) {
    enum { STEPS_OWN = 2 }; /* the slots of the step itself */
    bool wished = now->wished != before.wished && now->looked == before.looked && before.sweep == 0;
    CHECK(!wished || !before.excess || now->sweep != 0 || unseen_slots(now->cache) <= STEPS_OWN,
          "kept: a thread has too much, and %u slots are not swept", unseen_slots(now->cache));
    bool swept =
        before.sweep == seam_sweep_excess() && now->looked == before.looked && now->visits == before.visits + 1;
    for (unsigned slot = 1; swept && slot < SLOT_COUNT; slot++) {
        bool emptied = (before.loaded[slot / 64] & ~now->loaded[slot / 64]) >> slot % 64 & 1;
        CHECK(!emptied || now->cache->slots[slot].capacity == 0,
              "kept: a slot is emptied, and its room is not given up");
    }
}

/* It came to the slow paths that look round. */
static void check_look_round(const struct sight *now) {
    CHECK(now->orphans == 0 || now->orphans < before.orphans, "kept: an orphan is as it was, after a slow path");
    CHECK(now->parked == 0 || now->parked < before.parked, "kept: %zu blocks are parked, after a slow path",
          now->parked);
    CHECK(now->season == before.season || now->sweep != 0, "kept: a new season, and nothing is swept");
    check_excess(now);
    bool looked = now->looked != before.looked;
    unsigned swept = (unsigned)bits_min(before.given, seam_sweep_slots());
    CHECK(!looked || before.sweep != 0 || now->heap != before.heap || now->given <= before.given - swept + 1,
          "kept: %u slots are only given to, and %u were before a look round", now->given, before.given);
    CHECK(now->wished == before.wished || before.room < seam_wish_bytes() || option_value(OPTION_KEEPER) == 0 ||
              keeper_wished != 0 || world_has_keeper(),
          "kept: magazines have room for %zu bytes, and nobody wishes for a keeper", before.room);
}

static uint32_t fewest_threads(void) {
    uint32_t fewest = UINT32_MAX;
    for (unsigned i = 0; i < before.heaps; i++) {
        fewest = (uint32_t)bits_min(fewest, before.of[i].threads);
    }
    return fewest;
}

/* A thread is born where fewest are, or has a heap of its own; one that looks round moves where that helps, and not else. */
static void check_choice(const struct sight *now) {
    if (now->heap == NULL) {
        return;
    }
    uint32_t fewest = fewest_threads();
    uint32_t there = now->heap->number < before.heaps ? before.of[now->heap->number].threads : 0;
    if (before.heap == NULL) {
        CHECK(there <= fewest && (there == 0 || before.heaps >= seam_heaps_most()),
              "choice: born among %u threads, some heap had %u, and there are %u", there, fewest, before.heaps);
        return;
    }
    uint32_t had = before.of[before.heap->number].threads;
    bool moved = now->heap != before.heap;
    CHECK(!moved || had > there + 1, "choice: moved from among %u threads to among %u", had, there);
    CHECK(moved || now->looked == before.looked || had <= fewest + 1, "choice: stayed among %u threads, others have %u",
          had, fewest);
}

/* Of all heaps' blocks only this one's have gone anywhere. */
static bool is_only_one(const struct sight *now, unsigned number) {
    for (unsigned i = 0; i < before.heaps; i++) {
        bool same =
            now->of[i].free_bytes == before.of[i].free_bytes && now->of[i].depot_bytes == before.of[i].depot_bytes;
        if (i != number && !same) {
            return false;
        }
    }
    return true;
}

/* A thread has exchanged a magazine with a heap. */
static void check_exchange(const struct step *step, const struct sight *now, unsigned number) {
    const struct heap *heap = heap_numbered(number);
    bool settled = now->of[number].settled != before.of[number].settled;
    CHECK(settled || !seam_settles(heap, before.of[number].events, before.of[number].settled, before.now),
          "kept: a heap does not settle");
    bool marked =
        now->of[number].traffic < before.of[number].traffic || now->of[number].traffic == 0; /* counted from anew */
    /* what was given may have gone on to another heap, and that drains */
    uint32_t due = step->verb == VERB_MALLOC || is_only_one(now, number) ? before.of[number].due : 0;
    CHECK(settled || marked || due == 0 || now->of[number].due < due, "kept: %u magazines are due, and none is drained",
          due);
    /* from then on it is counted what the depots need; one magazine may have come since */
    CHECK(!marked || now->of[number].low + 1 >= now->of[number].magazines,
          "kept: of %u magazines %u were not needed, and none is due", now->of[number].magazines, now->of[number].low);
    CHECK(heap_returnable(heap) < heap->looked_at + seam_keeper_bytes() || option_value(OPTION_KEEPER) == 0 ||
              keeper_wished != 0 || world_has_keeper(),
          "kept: %zu bytes are free in slabs, and nobody wishes for a keeper", heap_returnable(heap));
    CHECK(heap->looked_at <= heap_returnable(heap), "kept: %zu bytes count as looked at, and %zu are free",
          heap->looked_at, heap_returnable(heap));
    CHECK(now->heap == NULL || now->exchanges != before.exchanges, "kept: a thread does not count its exchanges");
}

static void check_slow_path(const struct step *step, const struct sight *now) {
    CHECK(!seam_keeper_is_due(before.now), "kept: a keeper is wished for, and not started");
    if (auditor_is_in_child()) {
        return;
    }
    if (small && now->cache == before.cache) {
        check_look_round(now);
    }
    for (unsigned i = 0; i < before.heaps && small; i++) {
        if (now->of[i].events != before.of[i].events) {
            check_exchange(step, now, i);
        }
    }
    if (step->verb != VERB_FREE) {
        return;
    }
    CHECK(now->empty <= before.empty, "kept: a slab of several slices without a block in use");
    bool gave = now->slab_bytes < before.slab_bytes || span;
    bool seen_to = now->purged != before.purged || !seam_purge_is_overdue(LATE_MS) ||
                   (option_value(OPTION_KEEPER) != 0 && (world_has_keeper() || keeper_wished != 0));
    CHECK(!gave || seen_to, "kept: what is due, when a span was given back");
}

/* -- out of memory ------------------------------------------------------------------------------------------- */

/* Blocks of that size are as the step asks; slabs start at a slice, and at no more. */
static bool is_aligned(const struct step *step, size_t size) {
    size_t alignment = step->verb == VERB_ALIGNED ? program_alignment(step) : 1;
    return alignment <= SLICE_BYTES && size % alignment == 0;
}

/* Whether the slab has a run of free blocks that could be lent to the step. Of blocks of 16 bytes none is: their bitmap leaves no room to say so. */
static bool has_run(const struct step *step, const struct span *span, const char *base) {
    size_t alignment = step->verb == VERB_ALIGNED ? program_alignment(step) : 1;
    if (step->size > CLASS_LARGEST || alignment > SLICE_BYTES || span->size_class == 0) {
        return false;
    }
    size_t wanted = class_bytes[class_of(bits_round_up(bits_max(step->size, 1), alignment))];
    size_t size = class_bytes[span->size_class], run = 0;
    for (size_t number = span->blocks; size < wanted && number-- > 0;) {
        run = (span->bitmap[number / 64] >> (number % 64) & 1) != 0 ? run + 1 : 0;
        if (run * size >= wanted && ((uintptr_t)base + number * size) % alignment == 0) {
            return true;
        }
    }
    return false;
}

/* No block was to be had: nothing lies where only threads find it, no slab has one, nor a run of them, and what is free is joined. Who asks for more than
 * was mapped before need not have looked: what is unmapped has to come from the kernel. */
static void check_null(const struct step *step, const struct sight *now) {
    if (step->size > before.mapped) {
        return;
    }
    for (unsigned i = 0; i < heap_count(); i++) {
        CHECK(heap_numbered(i)->depot_bytes == 0, "refused: %u bytes, and the depots have %zu", step->size,
              heap_numbered(i)->depot_bytes);
    }
    for (uint32_t slice = street_first(); slice < auditor_extent(); slice++) {
        if (auditor_has_slab(slice)) {
            const struct span *span = arena_span(slice);
            size_t size = class_bytes[span->size_class];
            CHECK(span->free_blocks == 0 || size < step->size || !is_aligned(step, size),
                  "refused: %u bytes, and a slab has %u free blocks of %zu", step->size, span->free_blocks, size);
            CHECK(!has_run(step, span, arena_address(slice)),
                  "refused: %u bytes, and a slab has as many in a run of blocks of %zu", step->size, size);
        }
    }
    CHECK(now->parked == 0, "refused: %u bytes, and %zu blocks are parked", step->size, now->parked);
    CHECK(now->orphans == 0, "refused: %u bytes, and there is an orphan", step->size);
    check_relieved(now->cache, "refused", "and a block was refused");
    CHECK(empty_slabs(1) == 0, "refused: %u bytes, and a slab has no block in use", step->size);
    CHECK(step->size <= CLASS_LARGEST || ages_slices() == 0, "refused: %u bytes, and %u slices are dirty", step->size,
          ages_slices());
}

static void check_trim(const struct sight *now) {
    static const char when[] = "when the program had asked for it";
    check_depots(when);
    check_emptied(now->cache, "kept", when);
    CHECK(now->parked == 0, "kept: %zu blocks are parked, %s", now->parked, when);
    CHECK(now->orphans == 0, "kept: an orphan, %s", when);
    CHECK(ages_slices() == 0 && bins_slices(SPAN_KEPT) == 0, "kept: dirty spans, %s", when);
    check_slabs(true);
    uint32_t last = spans_front() == street_first() ? 0 : arena_span(spans_front() - 1)->first;
    CHECK(last == 0 || arena_span(last)->state != SPAN_CLEAN || arena_span(last)->slices < seam_retreat_slices(),
          "kept: the street's end, %s", when);
}

/* What others were purging when a trim began is purged when it ends. */
static void see_trim(const struct step *step) {
    trim.asked =
        step->verb == VERB_TRIM && step->yields == 0 && gate.page != NULL && seam_purge_pieces() != 0 && gate_is_open();
    trim.begun = seam_purges_begun;
    trim.refused = world_refused();
}

static void check_trim_awaits(const struct step *step) {
    bool over =
        trim.asked && fibers[step->thread].state == FIBER_IDLE && gate_is_open() && trim.refused == world_refused();
    CHECK(!over || seam_purges_begun - seam_purge_pieces() >= trim.begun,
          "kept: %u pieces are being purged, and were when the program asked for it", seam_purge_pieces());
}

/* -- figures ------------------------------------------------------------------------------------------------- */

/* What a slab's block takes of the slab: a lent one more than the program may use. */
static size_t bytes_of_block(const void *at) {
    uint32_t tag = tag_there(at);
    return tag_lends(tag) ? slab_lent_bytes(at) : slot_bytes[tag_slot(tag)];
}

static void count_block(const void *at, size_t usable, struct mallinfo2 *figures) {
    if (is_slab_block(at)) {
        figures->uordblks += bytes_of_block(at);
    } else if (is_span(at)) {
        size_t bytes = (size_t)arena_span(arena_slice(at))->slices << SLICE_BITS;
        figures->uordblks += bytes;
        figures->arena += bytes;
    } else if (shelter_usable(at) == 0) {
        figures->hblks++;
        figures->hblkhd += usable;
    }
}

static size_t bytes_in(void **top) {
    size_t bytes = 0;
    for (unsigned i = 0; i < magazine_count(top); i++) {
        bytes += bytes_of_block(top[-(ptrdiff_t)i]);
    }
    return bytes;
}

static size_t bytes_of_slot(const struct cache_class *magazines) {
    size_t bytes = magazines->top == VOID_TOP ? 0 : bytes_in(magazines->top);
    return bytes + (magazines->previous != NULL ? bytes_in(magazines->previous) : 0);
}

/* What lent blocks in a heap's depots take beside what the depots count. */
static size_t bytes_beside_depots(const struct heap *heap) {
    size_t bytes = 0;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        for (union magazine *full = heap->shelf[class].depot; full != NULL; full = full->next) {
            bytes += bytes_in(magazine_full_top(full));
        }
    }
    return bytes - heap->depot_bytes;
}

/* What mallinfo2 has said is what the program holds, and caches; a mapping may have room to grow besides. */
static void check_figures(const struct sight *now) {
    size_t kept = ages_bytes() + ((size_t)bins_slices(SPAN_KEPT) << SLICE_BITS);
    struct mallinfo2 figures = {.keepcost = kept, .arena = kept + now->slab_bytes};
    for (unsigned block = 0; block < BLOCKS_MOST; block++) {
        const struct held *held = &program_held[block];
        if (held->at != NULL) {
            count_block(held->at, held->usable, &figures);
        }
    }
    for (const void *block = shelter_parked; block != NULL; block = *(void *const *)block) {
        count_block(block, 0, &figures);
    }
    const struct thread_cache *lists[] = {registry.alive, registry.left};
    for (unsigned i = 0; i < 2; i++) {
        for (const struct thread_cache *cache = lists[i]; cache != NULL; cache = cache->next) {
            for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
                figures.uordblks += bytes_of_slot(&cache->slots[slot]);
            }
        }
    }
    figures.fordblks = figures.keepcost;
    for (unsigned i = 0; i < now->heaps; i++) {
        figures.fordblks += now->of[i].free_bytes + now->of[i].depot_bytes;
        figures.uordblks += bytes_beside_depots(heap_numbered(i));
    }
    const struct mallinfo2 *said = &program_figures;
    CHECK(said->uordblks == figures.uordblks && said->fordblks == figures.fordblks &&
              said->keepcost == figures.keepcost,
          "figures: %zu bytes are in use, %zu free, %zu of them kept, and mallinfo2 says %zu, %zu, %zu",
          figures.uordblks, figures.fordblks, figures.keepcost, said->uordblks, said->fordblks, said->keepcost);
    CHECK(said->arena == figures.arena, "figures: %zu bytes are in slabs, spans and kept, and mallinfo2 says %zu",
          figures.arena, said->arena);
    CHECK(said->hblks == figures.hblks && said->hblkhd >= figures.hblkhd && said->hblkhd <= 2 * figures.hblkhd,
          "figures: %zu mappings of %zu bytes, and mallinfo2 says %zu of %zu", figures.hblks, figures.hblkhd,
          said->hblks, said->hblkhd);
}

/* -- steps --------------------------------------------------------------------------------------------------- */

void duties_before(const struct step *step) {
    see_trim(step);
    whole = step->yields == 0 && scheduler_is_at_rest() && auditor_sees();
    if (step->verb != VERB_KEEPER && step->verb != VERB_IDLE && step->verb != VERB_REST) {
        quiet.looks = 0;
    }
    if (!whole) {
        return;
    }
    see(&before, step);
    turns = scheduler_turns;
    const struct fiber *fiber = &fibers[FIBER_KEEPER];
    keeper = fiber->state == FIBER_WAITING && fiber->until != UINT64_MAX;
    const void *at = program_held[step->block].at;
    small = step->verb == VERB_FREE ? is_slab_block(at) : step->verb == VERB_MALLOC && step->size <= CLASS_LARGEST;
    span = step->verb == VERB_FREE && is_span(at);
    given.since_look |= span;
    given.refused = span ? before.refused : given.refused;
}

/* The keeper does what is due, and nobody who frees: it slept, so it had heard what it was told. Now it may be awake, and has not come to run. */
static void check_left_to_keeper(const struct step *step) {
    size_t purged = purge_total() - before.purged;
    CHECK(step->verb != VERB_FREE || !keeper || option_value(OPTION_KEEPER) == 0 || auditor_is_in_child() ||
              purged == 0,
          "hurry: a free purges %zu bytes, and there is a keeper", purged);
}

static void check_thread_step(const struct step *step, const struct sight *now) {
    bool inside = now->visits != before.visits && now->cache == before.cache;
    if (inside && (small || step->verb == VERB_FREE)) {
        check_slow_path(step, now);
    }
    if (!auditor_is_in_child() && (step->verb == VERB_MALLOC || step->verb == VERB_FREE)) {
        check_choice(now);
    }
    if (!auditor_is_in_child() && step->verb == VERB_FIGURES) {
        check_figures(now);
    }
    if (!auditor_is_in_child() && step->verb == VERB_TRIM) {
        check_trim(now);
    }
}

void duties_after(const struct step *step) {
    if (!auditor_is_in_child()) {
        check_trim_awaits(step);
    }
    if (whole && auditor_sees() && turns == scheduler_turns) {
        check_left_to_keeper(step);
    }
    if (!whole || !scheduler_is_at_rest() || !auditor_sees() || turns != scheduler_turns) {
        quiet.looks = 0;
        return;
    }
    struct sight now;
    see(&now, step);
    if (before.nulls != now.nulls && !auditor_is_in_child()) {
        check_null(step, &now);
    }
    if (before.refused != now.refused) {
        quiet.looks = 0;
    } else if (step->verb == VERB_KEEPER) {
        if (keeper && !auditor_is_in_child()) {
            check_look(&now);
        }
    } else if (step->verb < VERBS_OF_THREADS) {
        check_thread_step(step, &now);
    }
}
