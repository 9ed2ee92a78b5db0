/* The arena against a model: which slices are whose, what they hold, what the figures must say. */
#include "arena.h"
#include "huge.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "options.h"
#include "os.h"
#include "pattern.h"
#include "purge.h"
#include "resident.h"
#include "scenario.h"
#include "street_walk.h"

enum { HELD_MOST = 200, SLICES_MOST = 6000 };

/* The model: spans held, and the content of one word in every slice of each. */
struct span_held {
    uint32_t slice, slices;
    uint64_t id;
};

struct model {
    struct span_held held[HELD_MOST];
    size_t count;
    uint32_t slices;
    uint64_t random;
    uint64_t next_id;
    bool huge; /* half of the spans are dense, and those have huge pages whatever is in use */
};

static struct model model;

static uint64_t *word_of(uint32_t slice) {
    size_t place = (slice * UINT32_C(2654435761)) >> 8 & (SLICE_BYTES - 8);
    return (uint64_t *)(void *)((char *)arena_address(slice) + place);
}

static void write_words(const struct span_held *span, uint32_t from) {
    for (uint32_t i = from; i < span->slices; i++) {
        *word_of(span->slice + i) = pattern_word(span->id, span->slice + i);
    }
}

static void check_words(const struct span_held *span) {
    for (uint32_t i = 0; i < span->slices; i++) {
        uint64_t word = *word_of(span->slice + i);
        EXPECT(word == pattern_word(span->id, span->slice + i), "slice %u of span %u has changed to %#llx",
               span->slice + i, span->slice, (unsigned long long)word);
    }
}

/* Held spans are used, lie apart, and make up all that is used. */
static void check_model(bool inside) {
    struct arena_figures figures;
    arena_figures(&figures);
    EXPECT(figures.used == (size_t)model.slices << SLICE_BITS, "%zu bytes are used instead of %u slices", figures.used,
           model.slices);
    for (size_t i = 0; i < model.count; i++) {
        const struct span *span = arena_span(model.held[i].slice);
        EXPECT(span->state == SPAN_USED && span->slices == model.held[i].slices, "span %u is in state %u, %u slices",
               model.held[i].slice, span->state, span->slices);
    }
    street_check(inside);
}

/* Mostly short, now and then as long as 3000 slices. */
static uint32_t some_length(uint64_t *random) {
    switch (pattern_below(random, 8)) {
    case 0:
        return 1 + (uint32_t)pattern_below(random, 3000);
    case 1:
        return 1 + (uint32_t)pattern_below(random, 200);
    default:
        return 1 + (uint32_t)pattern_below(random, 12);
    }
}

/* The use of a span of such a length, which was seen to be dense so often that it has huge pages. */
static uint32_t trusted(uint32_t slices) {
    enum { OFTEN = 200 };
    uint32_t use = slices < HUGE_OBJECT ? arena_use_of_slab(0) : arena_use_of_block((size_t)slices << SLICE_BITS);
    for (int i = 0; i < OFTEN; i++) {
        huge_saw(use, slices, (struct huge_sight){SIGHT_DENSE, HUGE_ENDS});
    }
    return use;
}

/* Returns false when the arena had none. */
static bool take(uint32_t slices, uint32_t alignment) {
    bool zero = false;
    bool dense = model.huge && pattern_below(&model.random, 2) == 0;
    uint32_t slice = arena_take(slices, alignment, dense ? trusted(slices) : ARENA_NO_USE, &zero);
    if (slice == 0) {
        return false;
    }
    EXPECT(((uintptr_t)arena_address(slice) >> SLICE_BITS) % alignment == 0, "%p is not aligned to %u slices",
           arena_address(slice), alignment);
    EXPECT(slice >= street_start() && slice + slices <= street_end(), "span %u lies outside the street", slice);
    for (uint32_t i = 0; i < slices; i++) {
        EXPECT(street_tag(slice + i) == TAG_NONE, "slice %u is handed out with tag %#x", slice + i,
               street_tag(slice + i));
        EXPECT(!zero || *word_of(slice + i) == 0, "slice %u is said to be zero", slice + i);
    }
    struct span_held *held = &model.held[model.count++];
    *held = (struct span_held){.slice = slice, .slices = slices, .id = ++model.next_id};
    model.slices += slices;
    arena_tag(slice, 1, TAG_LARGE);
    arena_tag(slice + 1, slices - 1, TAG_INSIDE);
    write_words(held, 0);
    return true;
}

static void give(size_t index) {
    struct span_held held = model.held[index];
    check_words(&held);
    EXPECT(arena_give(held.slice), "span %u is not a used one", held.slice);
    arena_age();
    model.slices -= held.slices;
    model.held[index] = model.held[--model.count];
}

static void give_all(void) {
    while (model.count > 0) {
        give(pattern_below(&model.random, model.count));
    }
}

static void extend(size_t index, uint32_t more) {
    struct span_held *held = &model.held[index];
    uint32_t next = held->slice + held->slices;
    uint32_t free_there = next != street_end() && street_is_free(next) ? arena_span(next)->slices : 0;
    bool at_front = next + free_there == street_end();
    bool fits = at_front || free_there >= more;
    bool extended = arena_extend(held->slice, held->slices + more);
    /* At the front the reservation decides, which the model does not know. */
    EXPECT((at_front && free_there < more) || extended == fits, "span %u by %u slices: %d, what follows fits: %d",
           held->slice, more, extended, fits);
    if (extended) {
        uint32_t from = held->slices;
        held->slices += more;
        model.slices += more;
        for (uint32_t i = from; i < held->slices; i++) {
            EXPECT(street_tag(held->slice + i) == TAG_NONE, "slice %u is added with tag %#x", held->slice + i,
                   street_tag(held->slice + i));
        }
        arena_tag(next, more, TAG_INSIDE);
        write_words(held, from);
    }
    check_words(held);
}

static void shorten(size_t index, uint32_t less) {
    struct span_held *held = &model.held[index];
    arena_shorten(held->slice, held->slices - less);
    arena_age();
    held->slices -= less;
    model.slices -= less;
    check_words(held);
}

static void step(uint32_t slices_most) {
    uint64_t *random = &model.random;
    size_t one = model.count > 0 ? pattern_below(random, model.count) : 0;
    switch (pattern_below(random, 16)) {
    case 0 ... 6: {
        uint32_t slices = some_length(random);
        if (model.count < HELD_MOST && model.slices + slices <= slices_most) {
            uint32_t alignment = pattern_below(random, 4) == 0 ? 1u << pattern_below(random, 7) : 1;
            (void)take(slices, alignment);
        }
        break;
    }
    case 7 ... 12:
        if (model.count > 0) {
            give(one);
        }
        break;
    case 13:
        if (model.count > 0 && model.slices < slices_most) {
            extend(one, 1 + (uint32_t)pattern_below(random, 20));
        }
        break;
    case 14:
        if (model.count > 0 && model.held[one].slices > 1) {
            shorten(one, 1 + (uint32_t)pattern_below(random, model.held[one].slices - 1));
        }
        break;
    default:
        if (pattern_below(random, 4) == 0) {
            (void)arena_purge_all();
        }
        break;
    }
}

/* With everything given and purged, all that was ever handed out is clean, and one span but for chunks with huge pages: those
 * of dense spans, and of long ones that grew at the front. That neighbours are joined is for street_check to see. */
static void check_all_clean(void) {
    struct arena_figures figures;
    give_all();
    check_model(true);
    (void)arena_purge_all();
    check_model(true);
    arena_figures(&figures);
    EXPECT(figures.used == 0 && figures.dirty == 0, "%zu used, %zu dirty", figures.used, figures.dirty);
    for (uint32_t slice = street_start(); slice < street_end(); slice += arena_span(slice)->slices) {
        const struct span *span = arena_span(slice);
        bool huge = span->state == SPAN_HUGE && (model.huge || huge_is_huge(huge_chunk(slice)));
        EXPECT(span->state == SPAN_CLEAN || huge, "span %u of %u slices is in state %u", slice, span->slices,
               span->state);
    }
}

static void run_seeds(uint64_t first, uint64_t seeds, uint32_t slices_most) {
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        model.random = seed;
        option_set(OPTION_RETAIN_MIB, (uint32_t)pattern_below(&model.random, 128));
        option_set(OPTION_RETAIN_PERCENT, (uint32_t)pattern_below(&model.random, 50));
        for (int i = 0; i < 100; i++) {
            step(slices_most);
            check_model(i % 32 == 0);
        }
        if (seed % 8 == 0) {
            check_all_clean();
        }
    }
    check_all_clean();
}

/* Ages are up to the clock; the other scenarios decide what is due. */
static void keep_for_ever(void) {
    option_set(OPTION_RETAIN_MS, 86400 * 1000);
    option_set(OPTION_KEEPER, 0); /* who gives does his share */
}

static void open_arena(void) {
    EXPECT(arena_open(), "no street");
    keep_for_ever();
}

static void against_the_model(void) {
    open_arena();
    run_seeds(1, SCENARIO_SANITIZED ? 20 : 200, SLICES_MOST);
}

static void against_the_model_short_spans(void) {
    open_arena();
    run_seeds(5000, SCENARIO_SANITIZED ? 100 : 5000, 150);
}

static void with_ages_of_a_millisecond(void) {
    open_arena();
    option_set(OPTION_RETAIN_MS, 1);
    run_seeds(9000, SCENARIO_SANITIZED ? 50 : 300, 600);
}

static void with_huge_pages(void) {
    open_arena();
    model.huge = true;
    option_set(OPTION_HUGE_FROM_MIB, 0);
    run_seeds(12000, SCENARIO_SANITIZED ? 5 : 20, SLICES_MOST);
    run_seeds(13000, SCENARIO_SANITIZED ? 50 : 400, 150);
    option_set(OPTION_RETAIN_MS, 1);
    run_seeds(16000, SCENARIO_SANITIZED ? 20 : 60, 600);
}

/* The arena's clock, which the linker puts in the place of os_nanoseconds: standing still, or running away at each look. */
uint64_t __wrap_os_nanoseconds(void);
static uint64_t run_away;

uint64_t __wrap_os_nanoseconds(void) {
    static uint64_t now;
    now += run_away;
    return now;
}

/* The chunks of 2 MiB that begin in the span and are advised so. */
static uint32_t chunks_advised(uint32_t slice, uint32_t slices, enum advice advice) {
    uint32_t chunks = 0;
    for (uint32_t i = slice; i < slice + slices; i++) {
        chunks += arena_span(i)->advice == advice && ((uintptr_t)arena_address(i) & (2 * 1024 * 1024 - 1)) == 0;
    }
    return chunks;
}

static uint32_t huge_chunks(uint32_t slice, uint32_t slices) { return chunks_advised(slice, slices, ADVICE_HUGE); }

static uint32_t take_dense(uint32_t slices) {
    bool zero = false;
    uint32_t slice = arena_take(slices, 1, trusted(slices), &zero);
    EXPECT(slice != 0 && zero, "no fresh memory");
    for (uint32_t i = 0; i < slices; i++) {
        EXPECT(*(const uint64_t *)arena_address(slice + i) == 0, "slice %u is not zero", slice + i);
    }
    return slice;
}

/* A long span that grows at the front is written there soon: it gets huge pages, which stay when it is given back, and all is
 * still clean and joined. */
static void what_grows_at_the_front_is_huge(void) {
    enum { SLICES = 60, MORE = 100 };
    open_arena();
    EXPECT(take(SLICES, 1), "no memory");
    (void)trusted(SLICES + MORE);
    extend(0, MORE);
    uint32_t huge = huge_chunks(model.held[0].slice, SLICES + MORE);
    EXPECT(huge >= 2, "%u chunks are huge", huge);
    check_all_clean();
}

/* A single object that ends within a chunk has small pages there: of a huge one the rest would be idle. */
static void take_with_rest(const void *argument) {
    enum { CHUNK = 32, CHUNKS = 4 };
    uint32_t rest = *(const uint32_t *)argument;
    open_arena();
    uint32_t slices = CHUNKS * CHUNK + rest;
    uint32_t slice = take_dense(slices);
    uint32_t huge = huge_chunks(slice, slices);
    EXPECT(huge == CHUNKS, "%u slices: %u chunks are huge, not %d", slices, huge, CHUNKS);
    EXPECT(arena_give(slice) && arena_purge_all() == (size_t)slices * SLICE_BYTES, "%u slices: not purged", slices);
    street_check(true);
}

static void part_of_a_chunk_stays_plain(void) {
    for (uint32_t rest = 0; rest < 32; rest++) {
        char output[1024];
        int status = scenario_child(take_with_rest, &rest, output, sizeof output);
        EXPECT(status == 0, "wait status %#x: %s", (unsigned)status, output);
    }
}

/* Of memory that need not all be mapped yet. */
static size_t resident_bytes(char *at, size_t bytes) {
    size_t page = os_page_bytes(), count = 0;
    for (size_t i = 0; i < bytes / page; i++) {
        unsigned char resident = 0;
        count += mincore(at + i * page, page, &resident) == 0 && (resident & 1) != 0;
    }
    return count * page;
}

enum { BROUGHT = 32 + 17 }; /* slices of a span that has a huge page for its tail: 15 slices of that are free */

/* As the kernel does when the tail is written. */
static char *bring_in_rest(uint32_t slice, size_t *bytes) {
    char *rest = arena_address(slice + BROUGHT);
    *bytes = 15 * SLICE_BYTES;
    EXPECT(arena_span(slice + BROUGHT)->state == SPAN_HUGE, "the rest is in state %u",
           arena_span(slice + BROUGHT)->state);
    for (size_t at = 0; at < *bytes; at += os_page_bytes()) {
        ((volatile char *)rest)[at] = 0;
    }
    EXPECT(resident_bytes(rest, *bytes) == *bytes, "it is not there");
    return rest;
}

/* What is left of a huge page behind an object goes when the object does, and when huge pages are given up for a while. */
static void what_a_huge_page_brought_in_goes_too(void) {
    scenario_single_pages();
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, 0);
    size_t bytes;
    uint32_t slice = take_dense(BROUGHT);
    char *rest = bring_in_rest(slice, &bytes);
    EXPECT(arena_give(slice) && arena_purge_all() == BROUGHT * SLICE_BYTES, "not purged");
    EXPECT(resident_bytes(rest, bytes) == 0, "%zu bytes stay of %zu", resident_bytes(rest, bytes), bytes);
    slice = take_dense(BROUGHT);
    rest = bring_in_rest(slice, &bytes);
    run_away = 2000000;
    (void)take_dense(BROUGHT);
    run_away = 0;
    EXPECT(resident_bytes(rest, bytes) == 0, "%zu bytes stay of %zu", resident_bytes(rest, bytes), bytes);
    street_check(true);
}

/* It goes also when a span before it does that is not its neighbour: the pages that are purged split the huge page, and the others would stay. */
static void what_is_free_of_a_split_huge_page_goes(void) {
    scenario_single_pages();
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, 0);
    enum { REST = 30 };
    uint32_t first = take_dense(1), second = take_dense(1);
    EXPECT(second == first + 1 && huge_is_huge(first), "spans %u and %u are not in one chunk", first, second);
    EXPECT(arena_span(second + 1)->state == SPAN_HUGE, "the rest is in state %u", arena_span(second + 1)->state);
    char *rest = arena_address(second + 1);
    size_t bytes = REST * SLICE_BYTES;
    for (size_t at = 0; at < bytes; at += os_page_bytes()) {
        ((volatile char *)rest)[at] = 0;
    }
    EXPECT(arena_give(first) && arena_purge_all() == SLICE_BYTES, "not purged");
    EXPECT(resident_bytes(rest, bytes) == 0, "%zu bytes stay of %zu, not neighbours", resident_bytes(rest, bytes),
           bytes);
    EXPECT(!huge_is_huge(first), "the chunk is still huge");
    street_check(true);
}

/* The street's end is given up as a whole, also where spans with huge pages lie beside such without. */
static void a_free_end_of_both_kinds_is_given_up(void) {
    enum { SPANS = 40, LEAST = 256 };
    scenario_single_pages();
    open_arena();
    uint32_t slice[SPANS];
    for (int i = 0; i < SPANS; i++) {
        bool zero;
        slice[i] = i % 2 == 0 ? take_dense(BROUGHT) : arena_take(BROUGHT, 1, ARENA_NO_USE, &zero);
        EXPECT(slice[i] != 0, "no memory");
    }
    for (int i = 0; i < SPANS; i++) {
        EXPECT(arena_give(slice[i]), "not in use");
    }
    (void)arena_purge_all();
    arena_retreat(LEAST, false);
    struct arena_figures figures;
    arena_figures(&figures);
    EXPECT(figures.extent == 0, "%zu bytes are left", figures.extent);
    street_check(true);
}

/* Memory is out: what was mapped ahead of a program that grows goes back also where the last span is in use. */
static void what_was_mapped_ahead_makes_room(void) {
    enum { SPANS_MOST = 1000, SLICES = 10, AHEAD = 32 << 20, LEFT = 16 << 20 };
    size_t before = address_space_bytes(), used = 0;
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    bool zero;
    for (int i = 0; i < SPANS_MOST && address_space_bytes() - before < used + AHEAD; i++) {
        EXPECT(arena_take(SLICES, 1, ARENA_NO_USE, &zero) != 0, "no memory");
        used += SLICES * SLICE_BYTES;
    }
    size_t had = address_space_bytes() - before;
    EXPECT(had >= used + AHEAD, "nothing is mapped ahead: %zu bytes for %zu", had, used);
    arena_make_room();
    size_t left = address_space_bytes() - before;
    EXPECT(left < used + LEFT, "%zu bytes are mapped for %zu, and %zu were", left, used, had);
    EXPECT(arena_take(SLICES, 1, ARENA_NO_USE, &zero) != 0, "no more memory");
    street_check(true);
}

/* An aligned span that is free again is found by who asks for its like, whatever became of it. */
static void aligned_spans_are_found_again(void) {
    enum { SPANS = 50, SLICES = 64, ALIGNMENT = 32 };
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    uint32_t slice[SPANS];
    bool zero;
    for (int i = 0; i < SPANS; i++) {
        slice[i] = arena_take(SLICES, ALIGNMENT, ARENA_NO_USE, &zero);
        EXPECT(slice[i] != 0 && arena_take(1, 1, ARENA_NO_USE, &zero) != 0, "no memory");
    }
    struct arena_figures before, after;
    arena_figures(&before);
    for (int round = 0; round < 4; round++) {
        for (int i = round % 2; i < SPANS; i += 2) {
            EXPECT(arena_give(slice[i]), "not in use");
        }
        if (round >= 2) {
            (void)arena_purge_all();
        }
        for (int i = round % 2; i < SPANS; i += 2) {
            slice[i] = arena_take(SLICES, ALIGNMENT, ARENA_NO_USE, &zero);
            EXPECT(slice[i] != 0 && (uintptr_t)arena_address(slice[i]) % (ALIGNMENT * SLICE_BYTES) == 0, "not aligned");
        }
        arena_figures(&after);
        EXPECT(after.extent == before.extent, "round %d: %zu bytes, and %zu before", round, after.extent,
               before.extent);
    }
    street_check(true);
}

/* Of a block that had to grow elsewhere the addresses are left. They are mapped again before the street grows: its rows would count for ever. */
static void unmapped_addresses_are_used_again(void) {
    enum { SLICES = 100, MOVED = 50, ROUNDS = 40, EXTENT_MOST = 1000 };
    open_arena();
    struct arena_figures figures;
    bool zero;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t slice = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
        EXPECT(slice != 0 && zero && *(uint64_t *)arena_address(slice + SLICES - 1) == 0, "round %d: no zeros", round);
        memset(arena_address(slice), 1, (size_t)SLICES << SLICE_BITS);
        os_unmap(arena_address(slice), (size_t)MOVED << SLICE_BITS); /* its pages were moved away */
        arena_abandon(slice, (size_t)MOVED << SLICE_BITS);
        arena_figures(&figures);
        EXPECT(figures.extent <= (size_t)EXTENT_MOST << SLICE_BITS, "round %d: %zu bytes", round, figures.extent);
        EXPECT(figures.unmapped >= (size_t)SLICES << SLICE_BITS && figures.used == 0, "round %d: %zu bytes unmapped",
               round, figures.unmapped);
        street_check(true);
    }
}

/* `spans` of `slices` slices, one behind the other; every second one but the last is freed then, once `write` has made all of them dirty. */
static void free_every_second(uint32_t *slice, int spans, uint32_t slices, bool write) {
    bool zero;
    for (int i = 0; i < spans; i++) {
        slice[i] = arena_take(slices, 1, ARENA_NO_USE, &zero);
        EXPECT(slice[i] != 0, "no memory");
        if (write) {
            memset(arena_address(slice[i]), 1, (size_t)slices << SLICE_BITS);
        }
    }
    for (int i = 0; i < spans - 1; i += 2) {
        EXPECT(arena_give(slice[i]), "not in use");
    }
}

/* Where memory is out, what is clean counts against no limit any more, wherever it lies; and it is mapped again as it is needed. */
static void clean_spans_are_unmapped_for_others(void) {
    enum { SPANS = 20, SLICES = 40 };
    open_arena();
    struct arena_figures figures;
    uint32_t slice[SPANS];
    bool zero;
    free_every_second(slice, SPANS, SLICES, true);
    arena_make_room();
    arena_figures(&figures);
    size_t unmapped = (size_t)SPANS / 2 * SLICES << SLICE_BITS, extent = figures.extent;
    EXPECT(figures.unmapped == unmapped && figures.dirty == 0, "%zu of %zu bytes are unmapped", figures.unmapped,
           unmapped);
    for (int i = 0; i < SPANS - 1; i += 2) {
        slice[i] = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
        EXPECT(slice[i] != 0 && zero && *(uint64_t *)arena_address(slice[i] + SLICES - 1) == 0, "no zeros");
    }
    arena_figures(&figures);
    EXPECT(figures.unmapped == 0 && figures.extent == extent, "%zu bytes are unmapped, %zu new", figures.unmapped,
           figures.extent - extent);
    street_check(true);
}

/* Each may split a mapping, of which a process has 65,530: the program's own mappings need most of them. */
static void unmapped_spans_are_bounded(void) {
    enum { SPANS = 18000, HOLES_MOST = 8192, CALLS = 12 };
    static uint32_t slice[SPANS];
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    free_every_second(slice, SPANS, 1, false);
    for (int i = 0; i < CALLS; i++) {
        arena_make_room();
    }
    uint32_t holes = 0;
    for (int i = 0; i < SPANS - 1; i += 2) {
        holes += arena_span(slice[i])->state == SPAN_UNMAPPED;
    }
    EXPECT(holes == HOLES_MOST, "%u of %d free spans are unmapped", holes, SPANS / 2);
    street_check(true);
}

/* Under a limit that was lowered below what is mapped nothing can be mapped again: what is clean stays, and is used, but for the one of many spans that
 * tells. */
static void stay_below_a_lowered_limit(int spans, size_t lost) {
    enum { SPANS_MOST = 40, SLICES = 40, CALLS = 4 };
    if (SCENARIO_SANITIZED) {
        return;
    }
    open_arena();
    struct arena_figures figures;
    uint32_t slice[SPANS_MOST];
    bool zero;
    free_every_second(slice, spans, SLICES, false);
    EXPECT(setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, RLIM_INFINITY}) == 0, "no limit");
    for (int i = 0; i < CALLS; i++) {
        arena_make_room();
    }
    arena_figures(&figures);
    EXPECT(figures.unmapped == (lost * SLICES) << SLICE_BITS, "%zu bytes are unmapped", figures.unmapped);
    for (size_t i = lost; i < (size_t)(spans - 1) / 2; i++) {
        EXPECT(arena_take(SLICES, 1, ARENA_NO_USE, &zero) != 0, "span %zu is lost", i);
    }
}

static void clean_spans_stay_below_a_lowered_limit(void) { stay_below_a_lowered_limit(10, 0); }

static void one_of_many_tells_of_a_lowered_limit(void) { stay_below_a_lowered_limit(40, 1); }

/* Somebody else has mapped memory there since: nothing of it is handed out, and nothing of it is lost. */
static void unmapped_addresses_may_be_taken_by_others(void) {
    enum { SLICES = 400 };
    open_arena();
    bool zero;
    uint32_t slice = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
    EXPECT(slice != 0, "no memory");
    char *theirs = arena_address(slice + SLICES / 2);
    arena_abandon(slice, 0);
    void *mapped = mmap(theirs, os_page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(mapped == theirs, "the kernel puts a mapping to %p, not to %p", mapped, (void *)theirs);
    theirs[0] = 7;
    for (int i = 0; i < 4; i++) {
        uint32_t other = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
        EXPECT(other != 0 && zero, "no memory");
        memset(arena_address(other), 1, (size_t)SLICES << SLICE_BITS);
        EXPECT(theirs[0] == 7, "memory of others was written");
    }
}

/* Long spans end before the street does: they can be mappings, and small blocks cannot. */
static void room_for_small_blocks_is_kept(void) {
    enum { LONG = 100 };
    option_set(OPTION_RESERVE_GIB, 1);
    open_arena();
    bool zero;
    uint32_t last = 0, slice;
    while ((slice = arena_take(LONG, 1, ARENA_NO_USE, &zero)) != 0) {
        last = slice;
    }
    struct arena_figures figures;
    arena_figures(&figures);
    EXPECT(last != 0 && !arena_extend(last, 2 * LONG), "a long span grows into what is kept");
    size_t kept = 0, limit = figures.reserved >> SLICE_BITS;
    while (arena_take(1, 1, ARENA_NO_USE, &zero) != 0) {
        kept++;
    }
    EXPECT(kept >= limit / 10, "%zu of %zu slices are kept", kept, limit);
    EXPECT(arena_give(last) && arena_take(LONG, 1, ARENA_NO_USE, &zero) == last, "what was freed is not handed out");
}

enum { OBJECT = 65 }; /* slices: a block of 4 MiB, which ends a little behind a chunk */

/* Where address space is limited, objects fill it: no room is left before the chunks in which the next ones begin. */
static void objects_fill_limited_space(void) {
    enum { ROOM_MIB = 512 };
    if (SCENARIO_SANITIZED) {
        return; /* a limit would take a sanitizer's own memory */
    }
    scenario_single_pages();
    (void)address_space_limit((size_t)ROOM_MIB << 20);
    open_arena();
    bool zero;
    size_t slices = 0;
    while (arena_take(OBJECT, 1, trusted(OBJECT), &zero) != 0) {
        slices += OBJECT;
    }
    EXPECT(slices * SLICE_BYTES > ((size_t)ROOM_MIB << 20) * 15 / 16, "%zu KiB of %d MiB", slices * SLICE_BYTES / 1024,
           ROOM_MIB);
    street_check(true);
}

/* Elsewhere a limit may come later, or be one of memory that may be written: gaps are at most a quarter of what is in use, beyond 64 MiB. */
static void gaps_between_objects_are_few(void) {
    scenario_single_pages();
    open_arena();
    struct arena_figures figures;
    for (int i = 0; i < 300; i++) {
        uint32_t slice = take_dense(OBJECT);
        EXPECT(i >= 10 || huge_chunks(slice, OBJECT) == 2, "%u chunks are huge", huge_chunks(slice, OBJECT));
        EXPECT(huge_chunks(slice, OBJECT) >= 1, "none is huge");
        arena_figures(&figures);
        size_t gaps = figures.extent - figures.used;
        EXPECT(gaps <= figures.used / 4 + ((size_t)66 << 20), "%zu KiB are in use, %zu are not", figures.used / 1024,
               gaps / 1024);
    }
    street_check(true);
}

/* A huge page that takes long is the last for a while: the rest of its span is not advised, so that folios may come there, what is free is
 * taken out, and the next span does without; a second later there are some again. */
static void slow_huge_pages_are_left(void) {
    enum { SLICES = 160 }; /* 10 MiB: at least four chunks begin in it */
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, 0);
    uint32_t quick = take_dense(SLICES);
    EXPECT(huge_chunks(quick, SLICES) >= 4, "%u chunks are huge", huge_chunks(quick, SLICES));
    run_away = 2000000;
    uint32_t slow = take_dense(SLICES);
    EXPECT(huge_chunks(slow, SLICES) <= 1, "%u chunks are huge after a slow one", huge_chunks(slow, SLICES));
    EXPECT(chunks_advised(slow, SLICES, ADVICE_PLAIN) == 0, "%u chunks are advised against",
           chunks_advised(slow, SLICES, ADVICE_PLAIN));
    run_away = 0;
    EXPECT(huge_chunks(quick, SLICES) >= 4, "the span before lost its huge pages");
    uint32_t next = take_dense(SLICES);
    EXPECT(huge_chunks(next, SLICES) == 0, "%u chunks of the next span are huge", huge_chunks(next, SLICES));
    street_check(true);
    usleep(1200 * 1000);
    uint32_t later = take_dense(SLICES);
    EXPECT(huge_chunks(later, SLICES) >= 4, "%u chunks are huge a second later", huge_chunks(later, SLICES));
    /* A mapping is tried alike, unless it is in use: then it is only asked for. */
    enum { BYTES = 16 * 1024 * 1024 };
    char *mapping = os_map(BYTES, os_page_bytes());
    EXPECT(mapping != NULL, "no mapping");
    memset(mapping, 7, BYTES);
    run_away = 2000000;
    (void)trusted(BYTES / SLICE_BYTES);
    (void)arena_prefer_huge(mapping, BYTES, false);
    for (int i = 0; i < BYTES; i++) {
        EXPECT(mapping[i] == 7, "byte %d has changed", i);
    }
    os_unmap(mapping, BYTES);
    uint32_t still = take_dense(SLICES);
    EXPECT(huge_chunks(still, SLICES) <= 1, "%u chunks are huge after a slow one", huge_chunks(still, SLICES));
    usleep(2400 * 1000);
    run_away = 0;
    EXPECT(huge_chunks(take_dense(SLICES), SLICES) >= 4, "none is huge again");
    run_away = 2000000;
    mapping = os_map(BYTES, os_page_bytes());
    EXPECT(mapping != NULL, "no mapping");
    (void)arena_prefer_huge(mapping, BYTES, true);
    EXPECT(pattern_not_zero(mapping, BYTES) == SIZE_MAX, "a fresh mapping is not zero");
    os_unmap(mapping, BYTES);
    run_away = 0;
    EXPECT(huge_chunks(take_dense(SLICES), SLICES) == 0, "chunks are huge after a slow mapping");
    street_check(true);
}

/* Large blocks have huge pages once one of about their length was written whole, and none any more once one was not. */
static void a_use_has_huge_pages_once_seen_dense(void) {
    enum { SLICES = 4 * 32, OTHERS = 8 * 32, AMENDS = 15 };
    static const size_t bytes = SLICES * SLICE_BYTES;
    uint32_t use = arena_use_of_block(bytes), other = arena_use_of_block((size_t)OTHERS * SLICE_BYTES);
    scenario_single_pages();
    open_arena();
    option_set(OPTION_HUGE_SLOW_US, 1000000);
    option_set(OPTION_KEEPER, 1); /* or the kernel might not be asked */
    bool zero;
    uint32_t slice = arena_take(SLICES, 1, use, &zero);
    EXPECT(huge_chunks(slice, SLICES) == 0, "the first block has huge pages");
    EXPECT(arena_span(slice)->watched == WATCH_PAGES, "nobody watches it");
    memset(arena_address(slice), 1, bytes);
    arena_look(arena_address(slice), bytes, WATCH_PAGES);
    slice = arena_take(OTHERS, 1, other, &zero);
    EXPECT(huge_chunks(slice, OTHERS) == 0, "a block of another length has huge pages");
    for (int i = 0; i < 8; i++) {
        slice = arena_take(SLICES, 1, use, &zero);
        EXPECT(huge_chunks(slice, SLICES) >= 3, "block %d has %u huge pages", i, huge_chunks(slice, SLICES));
        EXPECT(arena_span(slice)->watched == WATCH_CHUNKS, "nobody watches it");
    }
    slice = arena_take(SLICES, 1, use, &zero);
    EXPECT(huge_chunks(slice, SLICES) == 0, "more blocks than there is credit for have huge pages");
    /* Of a huge block only chunks are seen: those that are missing count, those that are there do not. */
    (void)trusted(SLICES);
    uint32_t huge = arena_take(SLICES, 1, use, &zero);
    arena_look(arena_address(slice), bytes, WATCH_CHUNKS);
    EXPECT(!huge_is_wanted(use, SLICES), "a use with a sparse block has huge pages");
    memset(arena_address(huge), 1, bytes);
    arena_look(arena_address(huge), bytes, WATCH_CHUNKS);
    EXPECT(!huge_is_wanted(use, SLICES), "a block on huge pages is said to be dense");
    memset(arena_address(slice), 1, bytes);
    for (int i = 0; i < AMENDS; i++) {
        arena_look(arena_address(slice), bytes, WATCH_PAGES);
        EXPECT(!huge_is_wanted(use, SLICES), "%d dense blocks make up for a sparse one", i + 1);
    }
    arena_look(arena_address(slice), bytes, WATCH_PAGES);
    EXPECT(huge_is_wanted(use, SLICES), "no number of dense blocks makes up for a sparse one");
    street_check(true);
}

static bool is_written(uint32_t slice, uint32_t slices) {
    return os_present(arena_address(slice), (unsigned)(slices * (SLICE_BYTES / os_page_bytes()))) != 0;
}

/* A block takes freed memory, of which the end is purged that its like left unwritten. */
static void ends_that_stay_unwritten_are_purged(void) {
    enum { SLICES = 4 * 32, WRITTEN = SLICES / 4, PIECE = 16 };
    static const size_t bytes = SLICES * SLICE_BYTES;
    uint32_t use = arena_use_of_block(bytes);
    bool zero;
    scenario_single_pages();
    open_arena();
    option_set(OPTION_KEEPER, 1); /* or the kernel might not be asked */
    uint32_t slice = arena_take(SLICES, 1, use, &zero);
    memset(arena_address(slice), 1, WRITTEN * SLICE_BYTES);
    arena_look(arena_address(slice), bytes, WATCH_PAGES);
    EXPECT(arena_give(slice) && arena_take(SLICES, 1, ARENA_NO_USE, &zero) == slice, "it is not taken again");
    memset(arena_address(slice), 1, bytes);
    for (int i = 0; i < 2; i++) { /* nothing is left to be purged the second time */
        uint64_t before = purge_total();
        EXPECT(arena_give(slice) && arena_take(SLICES, 1, use, &zero) == slice && !zero, "it is not taken again");
        EXPECT(purge_total() - before == (i == 0 ? bytes - WRITTEN * SLICE_BYTES : 0), "%zu bytes were purged",
               (size_t)(purge_total() - before));
        EXPECT(is_written(slice + WRITTEN - PIECE, PIECE) && !is_written(slice + WRITTEN, PIECE) &&
                   !is_written(slice + SLICES - PIECE, PIECE),
               "the end is another");
        EXPECT(arena_span(slice)->watched == WATCH_END, "nobody watches it");
        arena_look(arena_address(slice), bytes, WATCH_END);
    }
    /* More is not purged than fresh memory was taken. */
    memset(arena_address(slice), 1, bytes);
    EXPECT(arena_give(slice) && arena_take(SLICES, 1, use, &zero) == slice, "it is not taken again");
    EXPECT(is_written(slice + SLICES - PIECE, PIECE) && arena_span(slice)->watched == WATCH_NOTHING,
           "it is purged again and again");
    EXPECT(arena_take(2 * SLICES, 1, arena_use_of_block(2 * bytes), &zero) != 0 && zero, "no fresh memory");
    /* Nor once a block was written that far; its start says nothing. */
    arena_look(arena_address(slice), bytes, WATCH_END);
    EXPECT(!huge_is_wanted(use, SLICES), "a block that others have written is said to be dense");
    EXPECT(arena_give(slice) && arena_take(SLICES, 1, use, &zero) == slice, "it is not taken again");
    EXPECT(is_written(slice + SLICES - PIECE, PIECE) && arena_span(slice)->watched == WATCH_NOTHING,
           "an end is purged that was needed");
    street_check(true);
}

/* So have slabs: one is looked at when two more were made. After sparse ones it takes several that are dense. */
static void slabs_have_huge_pages_once_seen_dense(void) {
    enum { CLASS = 40, SLICES = 4, DENSE = 5, SPARSE = 4, AGAIN = 200 };
    scenario_single_pages();
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, 0);
    option_set(OPTION_HUGE_SLOW_US, 1000000);
    option_set(OPTION_KEEPER, 1); /* or the kernel might not be asked */
    uint32_t use = arena_use_of_slab(CLASS);
    for (int i = 0; i < DENSE + SPARSE + AGAIN; i++) {
        bool sparse = i >= DENSE && i < DENSE + SPARSE, zero;
        if (sparse) {
            huge_spend(use, UINT32_MAX); /* or some were huge, of which nobody sees what was written */
        }
        uint32_t slab = arena_take(SLICES, 1, use, &zero);
        bool huge = huge_is_huge(huge_chunk(slab)) && huge_is_huge(huge_chunk(slab + SLICES - 1));
        EXPECT(huge || (i != DENSE - 1 && i != DENSE + SPARSE + AGAIN - 1), "slab %d has no huge page", i);
        EXPECT(!huge || (i >= DENSE - 2 && i < DENSE) || i > DENSE + SPARSE + 45, "slab %d has a huge page", i);
        memset(arena_address(slab), 1, sparse ? SLICE_BYTES : SLICES * SLICE_BYTES);
    }
    street_check(true);
}

/* The price is what the clock says, beside what it may be. */
static void a_dear_huge_page_is_the_last(void) {
    enum { SLICES = 160 };
    open_arena();
    option_set(OPTION_HUGE_SLOW_US, 10000);
    run_away = 9000000;
    EXPECT(huge_chunks(take_dense(SLICES), SLICES) >= 4, "a huge page of 9 ms is too dear, where it may take 10");
    option_set(OPTION_HUGE_SLOW_US, 8000);
    EXPECT(huge_chunks(take_dense(SLICES), SLICES) <= 1, "a huge page of 9 ms is not too dear, where it may take 8");
    EXPECT(huge_chunks(take_dense(SLICES), SLICES) == 0, "there are more at once");
    run_away = 0;
}

/* Milliseconds that pass in none. */
uint64_t __real_os_milliseconds(void);
uint64_t __wrap_os_milliseconds(void);
static uint64_t later;

uint64_t __wrap_os_milliseconds(void) { return __real_os_milliseconds() + later; }

/* Each slow one is followed by a longer rest, up to about a minute. */
static void rests_grow_longer(void) {
    enum { FIRST_MS = 1000, LAST_MS = 64000, MARGIN_MS = 500 };
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, 0);
    for (uint64_t rest = FIRST_MS; rest <= 4 * LAST_MS; rest *= 2) {
        uint64_t now = bits_min(rest, LAST_MS);
        EXPECT(huge_is_wanted(trusted(1), 1), "there are none before a rest of %ju ms", (uintmax_t)now);
        huge_rest();
        later += now - MARGIN_MS;
        EXPECT(!huge_is_wanted(trusted(1), 1), "a rest is shorter than %ju ms", (uintmax_t)now);
        later += (uint64_t)2 * MARGIN_MS;
        EXPECT(huge_is_wanted(trusted(1), 1), "a rest is longer than %ju ms", (uintmax_t)now);
    }
}

/* The library writes to a huge page to see what it costs: up to some milliseconds, so that one call does so once. */
bool __real_huge_is_slow(void *chunk);
bool __wrap_huge_is_slow(void *chunk);
static unsigned tried;

bool __wrap_huge_is_slow(void *chunk) {
    tried++;
    return __real_huge_is_slow(chunk);
}

static void one_call_tries_one_huge_page(void) {
    enum { SLICES = 160, SPANS = 60, BOTH = 2, MINUTE_MS = 64000 };
    unsigned all = 0;
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, 0);
    for (unsigned i = 0; i < SPANS; i++) {
        run_away = i % BOTH == 0 ? 2000000 : 0;
        tried = 0;
        uint32_t slice = take_dense(SLICES);
        EXPECT(tried <= 1, "span %u was taken with %u trials", i, tried);
        all += tried;
        if (i % 3 != 0) {
            EXPECT(arena_give(slice), "not in use");
            (void)arena_purge_all();
        }
        later += MINUTE_MS;
    }
    EXPECT(all >= SPANS / 4, "%u trials in all", all);
}

/* Pages come in ahead of dense spans from the frontier: twice as many each time up to the option, never more than is in use,
 * none for other spans, and what is in already is used first. */
static void what_grows_is_brought_in_ahead(void) {
    enum { MOST = 16, SPANS = 400 };
    scenario_single_pages();
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    option_set(OPTION_POPULATE_KIB, MOST * SLICE_BYTES / 1024);
    bool zero;
    uint32_t plain = arena_take(8, 1, ARENA_NO_USE, &zero);
    EXPECT(resident_bytes(arena_address(plain), 8 * SLICE_BYTES) == 0, "pages came in for a span that may stay empty");
    uint32_t used = 8, first = arena_take(1, 1, arena_use_of_slab(0), &zero), last = first;
    if (resident_bytes(arena_address(first), SLICE_BYTES) == 0) {
        return; /* a kernel before 5.14 */
    }
    size_t most = 0;
    for (uint32_t i = 1; i <= SPANS; i++) {
        size_t ahead = resident_bytes(arena_address(last + 1), 2 * MOST * SLICE_BYTES) / SLICE_BYTES;
        EXPECT(ahead <= MOST && ahead <= used + i, "%zu slices were brought in ahead of %u", ahead, used + i);
        EXPECT(resident_bytes(arena_address(last), SLICE_BYTES) == SLICE_BYTES, "span %u was left out", i);
        most = bits_max(most, ahead);
        last = arena_take(1, 1, arena_use_of_slab(0), &zero);
        EXPECT(last == first + i && zero && *(const char *)arena_address(last) == 0, "no fresh memory");
    }
    EXPECT(most == MOST - 1, "at most %zu slices were brought in ahead of %u", most, MOST);
    EXPECT(arena_give(last), "not in use");
    EXPECT(arena_take(1, 1, arena_use_of_slab(0), &zero) == last && !zero,
           "fresh memory while there is some of before");
    street_check(true);

    /* Little is in use again, and the step is still the largest. */
    for (uint32_t slice = first; slice <= last; slice++) {
        EXPECT(arena_give(slice), "not in use");
    }
    EXPECT(arena_give(plain) && arena_purge_all() > 0, "not in use");
    arena_retreat(1, false);
    for (uint32_t i = 1; i <= MOST; i++) {
        last = arena_take(1, 1, arena_use_of_slab(0), &zero);
        size_t ahead = resident_bytes(arena_address(last + 1), 2 * MOST * SLICE_BYTES) / SLICE_BYTES;
        EXPECT(last == plain + i - 1, "span %u is at %u", i, last);
        EXPECT(resident_bytes(arena_address(last), SLICE_BYTES) == SLICE_BYTES, "span %u is left out from then on", i);
        EXPECT(ahead < i, "%zu slices were brought in ahead of %u", ahead, i);
    }
    street_check(true);
}

/* -- memory given back ----------------------------------------------------------------------------------------- */

static size_t dirty_bytes(void) {
    struct arena_figures figures;
    arena_figures(&figures);
    return figures.dirty;
}

/* Free memory is purged as a large block takes fresh memory, if its faults are few: little of its like was written, or huge pages come quickly. */
static void free_memory_gives_way(void) {
    enum { SLICES = 4 * 32 };
    static const size_t bytes = SLICES * SLICE_BYTES;
    uint32_t use = arena_use_of_block(2 * bytes), other = arena_use_of_block(4 * bytes);
    bool zero;
    scenario_single_pages();
    open_arena();
    option_set(OPTION_HUGE_SLOW_US, 1000000);
    option_set(OPTION_KEEPER, 1);
    uint32_t slice = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
    EXPECT(slice != 0 && arena_take(1, 1, ARENA_NO_USE, &zero) != 0, "no memory");
    EXPECT(arena_give(slice), "not in use");
    uint32_t sparse = arena_take(2 * SLICES, 1, use, &zero);
    EXPECT(sparse != 0 && dirty_bytes() == bytes, "%zu bytes are dirty", dirty_bytes());
    arena_look(arena_address(sparse), 2 * bytes, WATCH_PAGES);
    EXPECT(arena_take(2 * SLICES, 1, other, &zero) != 0 && dirty_bytes() == bytes,
           "a block of another use makes it %zu bytes", dirty_bytes());
    EXPECT(arena_take(SLICES + SLICES / 2, 1, use, &zero) != 0 && dirty_bytes() == 0,
           "%zu bytes stay beside fresh memory", dirty_bytes());
    /* Written throughout on small pages, it looks like a huge page. */
    size_t chunk = (size_t)CHUNK_SLICES << SLICE_BITS;
    EXPECT(!huge_gives_way(other), "a huge page was quick that nobody tried");
    huge_look_if_given((void *)bits_round_up((uintptr_t)arena_address(sparse), chunk));
    EXPECT(!huge_gives_way(other), "the kernel gave none, and it is said to be quick");
    memset(arena_address(sparse), 1, 2 * bytes);
    huge_look_if_given((void *)bits_round_up((uintptr_t)arena_address(sparse), chunk));
    EXPECT(huge_gives_way(other) || chunk / os_page_bytes() > OS_PRESENT_MOST, "a quick huge page is not seen");
    EXPECT(arena_give(sparse) && arena_take(3 * SLICES, 1, ARENA_NO_USE, &zero) != 0 && dirty_bytes() == 2 * bytes,
           "a block that has no huge pages makes it %zu bytes", dirty_bytes());
    huge_rest();
    EXPECT(!huge_gives_way(other), "huge pages are quick after a slow one");
    street_check(true);
}

/* Spans of `slices` slices with a used one of a slice behind each, so that they do not join. */
static void take_apart(uint32_t *slice, size_t count, uint32_t slices) {
    bool zero;
    for (size_t i = 0; i < count; i++) {
        slice[i] = arena_take(slices, 1, ARENA_NO_USE, &zero);
        EXPECT(slice[i] != 0 && arena_take(1, 1, ARENA_NO_USE, &zero) != 0, "no memory");
        memset(arena_address(slice[i]), 1, (size_t)slices << SLICE_BITS);
    }
}

static void budget_is_kept(void) {
    enum { COUNT = 64, SLICES = 16 };
    uint32_t slice[COUNT];
    open_arena();
    option_set(OPTION_RETAIN_MIB, 8);
    option_set(OPTION_RETAIN_PERCENT, 10);
    take_apart(slice, COUNT, SLICES);
    for (size_t i = 0; i < COUNT; i++) {
        EXPECT(arena_give(slice[i]), "span %u is not a used one", slice[i]);
        arena_age();
        struct arena_figures figures;
        arena_figures(&figures);
        size_t budget = ((size_t)8 << 20) + figures.used / 10;
        EXPECT(figures.dirty <= budget + 2 * SLICES * SLICE_BYTES, "%zu dirty of a budget of %zu", figures.dirty,
               budget);
        /* ... and not purged further than needed: one span more would have been too much */
        EXPECT(figures.dirty == (i + 1) * SLICES * SLICE_BYTES || figures.dirty + SLICES * SLICE_BYTES > budget,
               "%zu dirty, the budget of %zu had room", figures.dirty, budget);
        EXPECT(figures.dirty + figures.purged == (i + 1) * SLICES * SLICE_BYTES, "%zu dirty, %llu purged",
               figures.dirty, (unsigned long long)figures.purged);
    }
    /* The oldest went first. */
    bool dirty = false;
    for (size_t i = 0; i < COUNT; i++) {
        dirty = dirty || arena_span(slice[i])->state == SPAN_DIRTY;
        EXPECT(!dirty || arena_span(slice[i])->state == SPAN_DIRTY, "span %zu went before an older one", i);
        EXPECT(dirty || *(char *)arena_address(slice[i]) == 0, "span %zu is clean and holds data", i);
    }
    street_check(true);
}

static void age_is_kept(void) {
    uint32_t slice[8];
    open_arena();
    take_apart(slice, 8, 4);
    for (size_t i = 0; i < 8; i++) {
        (void)arena_give(slice[i]);
    }
    arena_age();
    EXPECT(dirty_bytes() == 32 * SLICE_BYTES, "%zu dirty bytes are left of those kept for a day", dirty_bytes());
    option_set(OPTION_RETAIN_MS, 20);
    usleep(60 * 1000); /* at least: the clock's grain is some milliseconds */
    for (int call = 0; call < 4; call++) { /* each does a share */
        arena_age();
    }
    EXPECT(dirty_bytes() == 0, "%zu bytes are dirty after three times their age", dirty_bytes());
    street_check(true);
}

static void purged_memory_leaves(void) {
    enum { SLICES = 1024 }; /* 64 MiB */
    bool zero;
    open_arena();
    option_set(OPTION_RETAIN_MIB, 4096);
    uint32_t slice = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
    EXPECT(slice != 0 && zero, "no fresh memory");
    size_t before = resident_kib();
    memset(arena_address(slice), 1, (size_t)SLICES << SLICE_BITS);
    size_t full = resident_kib();
    (void)arena_give(slice);
    bool told = !SCENARIO_SANITIZED; /* shadow memory is resident too, and stays */
    EXPECT(!told || (full > before + 60 * 1024 && resident_kib() > before + 60 * 1024), "%zu, %zu, %zu KiB", before,
           full, resident_kib());
    EXPECT(arena_purge_all() == (size_t)SLICES << SLICE_BITS, "not all was given back");
    EXPECT(!told || resident_kib() < before + 4 * 1024, "%zu KiB before, %zu after", before, resident_kib());
    uint32_t again = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
    EXPECT(again == slice && zero, "span %u instead of %u, zero: %d", again, slice, zero);
    EXPECT(pattern_not_zero(arena_address(again), (size_t)SLICES << SLICE_BITS) == SIZE_MAX, "it is not zero");
}

/* Dirty memory is used again before anything else, the best fit of it. */
static void best_fit_of_the_dirty(void) {
    uint32_t slice[4];
    bool zero;
    open_arena();
    take_apart(&slice[0], 1, 9);
    take_apart(&slice[1], 1, 5);
    take_apart(&slice[2], 1, 7);
    take_apart(&slice[3], 1, 5);
    (void)arena_give(slice[0]);
    (void)arena_give(slice[2]);
    (void)arena_give(slice[1]);
    EXPECT(arena_take(6, 1, ARENA_NO_USE, &zero) == slice[2] && !zero, "6 slices are not taken from 7");
    EXPECT(arena_take(5, 1, ARENA_NO_USE, &zero) == slice[1] && !zero, "5 slices are not taken from 5");
    EXPECT(arena_take(8, 1, ARENA_NO_USE, &zero) == slice[0] && !zero, "8 slices are not taken from 9");
    (void)arena_give(slice[3]);
    EXPECT(arena_purge_all() == (5 + 1 + 1) * SLICE_BYTES, "not the rests, but something else was purged");
    EXPECT(arena_take(5, 1, ARENA_NO_USE, &zero) == slice[3] && zero, "5 clean slices are not taken before fresh ones");
    street_check(true);
}

/* What the kernel will not take back (locked memory) is kept, keeps nobody in a loop or from the rest, and is used again. */
static void locked_memory_stays(void) {
    uint32_t slice[3];
    bool zero;
    open_arena();
    take_apart(slice, 3, 2);
    if (SCENARIO_SANITIZED || mlock(arena_address(slice[0]), 2 * SLICE_BYTES) != 0) {
        return; /* an ordinary user without the right to; the sanitizers turn mlock off */
    }
    for (size_t i = 0; i < 3; i++) {
        (void)arena_give(slice[i]);
    }
    option_set(OPTION_RETAIN_MIB, 0);
    option_set(OPTION_RETAIN_PERCENT, 0);
    for (int i = 0; i < 8; i++) {
        (void)arena_purge_all();
    }
    EXPECT(arena_span(slice[0])->state == SPAN_KEPT, "locked memory is in state %u", arena_span(slice[0])->state);
    EXPECT(arena_span(slice[1])->state == SPAN_CLEAN && arena_span(slice[2])->state == SPAN_CLEAN,
           "one locked span keeps the others dirty: states %u and %u", arena_span(slice[1])->state,
           arena_span(slice[2])->state);
    EXPECT(dirty_bytes() == 2 * SLICE_BYTES, "%zu bytes are said to be kept", dirty_bytes());
    EXPECT(arena_take(2, 1, ARENA_NO_USE, &zero) == slice[0] && !zero, "the locked span is not used again");
    EXPECT(*(char *)arena_address(slice[0]) == 1, "the locked span has lost its content");
    street_check(true);
}

/* -- little room ----------------------------------------------------------------------------------------------- */

static void leave_room(size_t bytes) {
    struct rlimit limit = {address_space_bytes() + bytes, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "no limit can be set");
}

/* Two neighbours that the kernel will not take back are long enough together only: taken at last, they are not zero. */
static void locked_memory_joined_at_last(void) {
    bool zero;
    open_arena();
    uint32_t first = arena_take(2, 1, ARENA_NO_USE, &zero), second = arena_take(2, 1, ARENA_NO_USE, &zero);
    EXPECT(first != 0 && second == first + 2, "no two spans side by side");
    memset(arena_address(first), 1, 4 * SLICE_BYTES);
    if (SCENARIO_SANITIZED || mlock(arena_address(first), 4 * SLICE_BYTES) != 0) {
        return; /* as above */
    }
    leave_room(0);
    while (arena_take(1, 1, ARENA_NO_USE, &zero) != 0) {
    }
    EXPECT(arena_give(first), "not in use");
    (void)arena_purge_all();
    EXPECT(arena_span(first)->state == SPAN_KEPT, "locked memory is in state %u", arena_span(first)->state);
    EXPECT(arena_give(second), "not in use");
    EXPECT(arena_take(4, 1, ARENA_NO_USE, &zero) == first, "what is free is not joined");
    EXPECT(!zero && *(char *)arena_address(first) == 1, "locked memory is said to be zero, and is %d",
           *(char *)arena_address(first));
    street_check(true);
}

/* Takes until there is no more; gives it all back; finds as much again. */
static void exhaust_and_recover(void) {
    struct arena_figures figures;
    arena_figures(&figures);
    size_t all = 0;
    for (int round = 0; round < 4; round++) {
        static const uint32_t lengths[] = {64, 16, 4, 1};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            while (model.count < HELD_MOST && take(lengths[i], 1)) {
            }
        }
        EXPECT(model.count < HELD_MOST, "the model is too small for %zu bytes", figures.reserved);
        check_model(true);
        all = round == 0 ? model.slices : all;
        EXPECT(model.slices == all, "%u slices in round %d, %zu before", model.slices, round, all);
        EXPECT((size_t)model.slices << SLICE_BITS <= figures.reserved, "more than was reserved");
        /* Every second one back: nothing joins, so only what fits a gap can be had. */
        for (size_t i = 0; i < model.count; i += 2) {
            give(i);
        }
        check_model(true);
        check_all_clean();
    }
    EXPECT(all > 0, "nothing at all");
}

/* Where the kernel refuses the bookkeeping of a long street, a shorter one is opened; none is left behind. */
static void refused_bookkeeping(void) {
    if (SCENARIO_SANITIZED) {
        return;
    }
    size_t before = address_space_bytes();
    struct rlimit limit = {(size_t)1 << 20, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0, "no limit can be set");
    bool opened = false;
    for (int i = 0; i < 3 && !opened; i++) {
        opened = arena_open();
    }
    struct arena_figures figures;
    arena_figures(&figures);
    size_t left = address_space_bytes() - before;
    EXPECT(left <= (opened ? figures.reserved + SLICE_BYTES : 0), "%zu bytes of address space are left behind", left);
}

static void in_little_room(const void *room) {
    leave_room(*(const size_t *)room);
    EXPECT(arena_open(), "no street in %zu bytes", *(const size_t *)room);
    keep_for_ever();
    exhaust_and_recover();
    run_seeds(20000, 100, (uint32_t)(*(const size_t *)room >> SLICE_BITS));
}

static void steps_down_where_room_is_little(void) {
    if (SCENARIO_SANITIZED) {
        return;
    }
    for (size_t room = (size_t)2 << 20; room <= (size_t)256 << 20; room = room * 3 / 2) {
        char output[1024];
        int status = scenario_child(in_little_room, &room, output, sizeof output);
        EXPECT(status == 0, "in %zu bytes: wait status %#x: %s", room, (unsigned)status, output);
    }
}

/* The end of the street is unmapped once it has been long, and no longer grew less, for a look; and mapped again when it is needed. */
static void end_settles(void) {
    enum { SLICES = 1024 }; /* 64 MiB */
    bool zero;
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    uint32_t kept = arena_take(1, 1, ARENA_NO_USE, &zero);
    size_t before = address_space_bytes();
    for (int round = 0; round < 3; round++) {
        uint32_t slice = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
        EXPECT(kept != 0 && slice == kept + 1 && zero, "no fresh memory");
        memset(arena_address(slice), 1, (size_t)SLICES << SLICE_BITS);
        (void)arena_settle();
        EXPECT(!arena_settle() && arena_give(slice), "span %u is not a used one", slice);
        EXPECT(!arena_settle(), "what is dirty is to be unmapped");
        (void)arena_purge_all();
        EXPECT(arena_settle(), "a long end is forgotten");
        bool more = arena_settle();
        size_t after = address_space_bytes();
        EXPECT(!more && after <= before + ((size_t)4 << 20), "%zu bytes of address space, %zu before", after, before);
        street_check(true);
        EXPECT(!arena_settle() && address_space_bytes() == after, "a short end is unmapped");
    }
    uint32_t slice = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
    EXPECT(arena_give(slice) && arena_purge_all() > 0 && arena_settle(), "a long end is forgotten");
    uint32_t half = arena_take(SLICES / 2, 1, ARENA_NO_USE, &zero);
    EXPECT(half == slice && arena_settle(), "an end of which was taken is unmapped");
    EXPECT(!arena_settle() && street_end() == slice + SLICES / 2, "the street ends at %u", street_end());
    street_check(true);
}

/* Nothing is mapped for a span that cannot grow: the last one lies behind it. */
static void extends_nothing_in_vain(void) {
    bool zero;
    open_arena();
    uint32_t slice = arena_take(64, 1, ARENA_NO_USE, &zero), last = arena_take(1, 1, ARENA_NO_USE, &zero);
    size_t before = address_space_bytes();
    EXPECT(slice != 0 && last == slice + 64, "no two spans side by side");
    EXPECT(!arena_extend(slice, 4096), "grew into a used span");
    EXPECT(address_space_bytes() == before, "%zu bytes are mapped for nothing", address_space_bytes() - before);
    street_check(true);
}

/* A limit that falls later: commits fail, and nothing else does. */
static void survives_refused_commits(void) {
    if (SCENARIO_SANITIZED) {
        return;
    }
    open_arena();
    EXPECT(take(10, 1), "no memory");
    struct rlimit limit = {(size_t)16 << 20, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0, "no limit can be set");
    static const uint32_t lengths[] = {64, 16, 4, 1}; /* what was committed before the limit fell is usable still */
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        while (model.count < HELD_MOST && take(lengths[i], 1)) {
        }
    }
    EXPECT(model.count < HELD_MOST, "the limit does not bite");
    check_model(true);
    EXPECT(!take(5000, 1), "5000 slices more within the limit");
    run_seeds(30000, 50, model.slices);
    limit.rlim_cur = RLIM_INFINITY;
    EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0, "no limit can be lifted");
    EXPECT(take(5000, 1), "the arena has not recovered");
    check_all_clean();
}

/* A small process commits little: under strict overcommit every process pays for what it commits. */
static void commits_follow_use(void) {
    open_arena();
    for (uint32_t slices = 1; slices <= 2048; slices *= 2) {
        EXPECT(take(slices, 1), "no memory");
        struct arena_figures figures;
        arena_figures(&figures);
        size_t writable = 0;
        /* Slices beyond the extent that can be written already. */
        for (uint32_t at = street_end(); at < street_end() + 8192; at++) {
            int ends[2];
            EXPECT(pipe(ends) == 0, "no pipe");
            /* The kernel reads a byte into it, or says that it cannot. */
            bool usable = write(ends[1], "", 1) == 1 && read(ends[0], arena_address(at), 1) == 1;
            close(ends[0]);
            close(ends[1]);
            if (!usable) {
                break;
            }
            writable++;
        }
        EXPECT(writable <= 32 + figures.extent / SLICE_BYTES, "%zu slices are committed ahead of %zu in use", writable,
               figures.extent / SLICE_BYTES);
    }
}

/* -- misuse ---------------------------------------------------------------------------------------------------- */

struct race {
    pthread_barrier_t start;
    uint32_t slice;
    _Atomic unsigned given;
};

static void *give_in_a_race(void *argument) {
    struct race *race = argument;
    pthread_barrier_wait(&race->start);
    race->given += arena_give(race->slice);
    return NULL;
}

/* Of two threads that give one span at once one is told that it was no longer there, whatever it is joined with by
 * then; the arena stays whole. */
static void given_twice(void) {
    bool zero;
    open_arena();
    for (int round = 0; round < 300; round++) {
        struct race race = {.slice = arena_take(3, 1, ARENA_NO_USE, &zero)};
        pthread_t thread;
        uint32_t behind = arena_take(1, 1, ARENA_NO_USE, &zero);
        EXPECT(race.slice != 0 && behind != 0 && pthread_barrier_init(&race.start, NULL, 2) == 0,
               "nothing to race with");
        EXPECT(pthread_create(&thread, NULL, give_in_a_race, &race) == 0, "no thread");
        (void)give_in_a_race(&race);
        pthread_join(thread, NULL);
        EXPECT(race.given == 1, "span %u was given %u times", race.slice, race.given);
        EXPECT(!arena_give(race.slice), "span %u was given once more", race.slice);
        EXPECT(arena_give(behind), "span %u is not a used one", behind);
        EXPECT(!arena_give(behind) && !arena_give(race.slice), "joined spans were given once more");
        pthread_barrier_destroy(&race.start);
        street_check(true);
    }
    check_all_clean();
}

static void knows_what_was_freed(void) {
    uint32_t slice[2];
    size_t bytes;
    open_arena();
    take_apart(slice, 2, 3);
    char *start = arena_address(slice[0]);
    EXPECT(!arena_was_freed(start, &bytes), "a used span was freed");
    (void)arena_give(slice[0]);
    for (size_t at = 0; at < 3 * SLICE_BYTES; at += 4097) {
        EXPECT(arena_was_freed(start + at, &bytes) && bytes == 3 * SLICE_BYTES, "byte %zu: %zu bytes", at, bytes);
    }
    EXPECT(!arena_was_freed(start + 3 * SLICE_BYTES, &bytes), "what follows was freed");
    (void)arena_purge_all();
    EXPECT(arena_was_freed(start + 5, &bytes) && bytes == 3 * SLICE_BYTES, "purged: %zu bytes", bytes);
    EXPECT(!arena_was_freed((char *)window.base + 100, &bytes), "the bookkeeping was freed");
}

/* -- many threads ---------------------------------------------------------------------------------------------- */

static void *run_thread(void *argument) {
    enum { HELD = 12 };
    struct span_held held[HELD] = {{0}};
    uint64_t random = (uint64_t)(uintptr_t)argument;
    for (uint64_t round = 0; round < (SCENARIO_SANITIZED ? 3000 : 8000); round++) {
        struct span_held *one = &held[pattern_below(&random, HELD)];
        bool zero = false;
        if (one->slices != 0) {
            check_words(one);
            if (pattern_below(&random, 4) == 0 && one->slices > 1) {
                arena_shorten(one->slice, --one->slices);
            } else if (pattern_below(&random, 4) == 0 && arena_extend(one->slice, one->slices + 1)) {
                write_words(one, one->slices++);
            } else {
                EXPECT(arena_give(one->slice), "span %u is not a used one", one->slice);
                one->slices = 0;
            }
        } else {
            one->slices = 1 + (uint32_t)pattern_below(&random, 20);
            one->slice = arena_take(one->slices, 1u << pattern_below(&random, 3), ARENA_NO_USE, &zero);
            EXPECT(one->slice != 0, "no memory");
            one->id = (uint64_t)(uintptr_t)argument << 32 | round;
            for (uint32_t i = 0; i < one->slices; i++) {
                EXPECT(!zero || *word_of(one->slice + i) == 0, "slice %u is said to be zero", one->slice + i);
            }
            write_words(one, 0);
        }
        if (pattern_below(&random, 64) == 0) {
            (void)arena_purge_all();
        }
        arena_age();
    }
    for (size_t i = 0; i < HELD; i++) {
        if (held[i].slices != 0) {
            check_words(&held[i]);
            EXPECT(arena_give(held[i].slice), "span %u is not a used one", held[i].slice);
        }
    }
    return NULL;
}

static void with_many_threads(void) {
    enum { THREADS = 8 };
    pthread_t thread[THREADS];
    open_arena();
    option_set(OPTION_RETAIN_MIB, 4);
    option_set(OPTION_RETAIN_MS, 5);
    for (uintptr_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, run_thread, (void *)(i + 1)) == 0, "no thread");
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    check_all_clean();
}

static pthread_barrier_t ready;
static uint32_t purged_slice;

static void *ask_for_too_much(void *argument) {
    const volatile uint8_t *state = &arena_span(purged_slice)->state;
    bool zero;
    pthread_barrier_wait(&ready);
    while (*state == SPAN_DIRTY) {
    }
    EXPECT(arena_take(*(const uint32_t *)argument, 1, ARENA_NO_USE, &zero) == 0, "more than there is");
    return NULL;
}

static void ask_while_purging(const void *room) {
    enum { THREADS = 6 };
    pthread_t thread[THREADS];
    struct arena_figures figures;
    bool zero;
    alarm(60);
    leave_room(*(const size_t *)room);
    option_set(OPTION_RESERVE_GIB, 1); /* at most: a street that can be used up */
    open_arena();
    const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_AS, &unlimited) == 0, "no limit can be lifted"); /* threads need stacks */
    arena_figures(&figures);
    uint32_t limit = (uint32_t)(figures.reserved >> SLICE_BITS);
    for (int round = 0; round < 20; round++) {
        purged_slice = arena_take(limit / 2, 1, ARENA_NO_USE, &zero);
        EXPECT(purged_slice != 0 && pthread_barrier_init(&ready, NULL, THREADS + 1) == 0, "nothing to purge");
        memset(arena_address(purged_slice), 1, (size_t)(limit / 2) << SLICE_BITS);
        (void)arena_give(purged_slice);
        for (size_t i = 0; i < THREADS; i++) {
            EXPECT(pthread_create(&thread[i], NULL, ask_for_too_much, &limit) == 0, "no thread");
        }
        pthread_barrier_wait(&ready);
        (void)arena_purge_all();
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
        }
        pthread_barrier_destroy(&ready);
        street_check(true);
    }
}

/* Threads that find the street exhausted wait for what another is purging; when that is done, each of them goes on. */
static void all_who_wait_go_on(void) {
    if (SCENARIO_SANITIZED) {
        return;
    }
    size_t room = (size_t)160 << 20;
    char output[1024];
    int status = scenario_child(ask_while_purging, &room, output, sizeof output);
    EXPECT(status == 0, "wait status %#x: %s", (unsigned)status, output);
}

static const struct scenario scenarios[] = {
    {"against_the_model", against_the_model},
    {"against_the_model_short_spans", against_the_model_short_spans},
    {"with_ages_of_a_millisecond", with_ages_of_a_millisecond},
    {"with_huge_pages", with_huge_pages},
    {"what_grows_at_the_front_is_huge", what_grows_at_the_front_is_huge},
    {"part_of_a_chunk_stays_plain", part_of_a_chunk_stays_plain},
    {"what_a_huge_page_brought_in_goes_too", what_a_huge_page_brought_in_goes_too},
    {"what_is_free_of_a_split_huge_page_goes", what_is_free_of_a_split_huge_page_goes},
    {"a_use_has_huge_pages_once_seen_dense", a_use_has_huge_pages_once_seen_dense},
    {"ends_that_stay_unwritten_are_purged", ends_that_stay_unwritten_are_purged},
    {"slabs_have_huge_pages_once_seen_dense", slabs_have_huge_pages_once_seen_dense},
    {"a_dear_huge_page_is_the_last", a_dear_huge_page_is_the_last},
    {"free_memory_gives_way", free_memory_gives_way},
    {"a_free_end_of_both_kinds_is_given_up", a_free_end_of_both_kinds_is_given_up},
    {"what_was_mapped_ahead_makes_room", what_was_mapped_ahead_makes_room},
    {"aligned_spans_are_found_again", aligned_spans_are_found_again},
    {"unmapped_addresses_are_used_again", unmapped_addresses_are_used_again},
    {"clean_spans_are_unmapped_for_others", clean_spans_are_unmapped_for_others},
    {"unmapped_spans_are_bounded", unmapped_spans_are_bounded},
    {"clean_spans_stay_below_a_lowered_limit", clean_spans_stay_below_a_lowered_limit},
    {"one_of_many_tells_of_a_lowered_limit", one_of_many_tells_of_a_lowered_limit},
    {"unmapped_addresses_may_be_taken_by_others", unmapped_addresses_may_be_taken_by_others},
    {"room_for_small_blocks_is_kept", room_for_small_blocks_is_kept},
    {"objects_fill_limited_space", objects_fill_limited_space},
    {"gaps_between_objects_are_few", gaps_between_objects_are_few},
    {"slow_huge_pages_are_left", slow_huge_pages_are_left},
    {"rests_grow_longer", rests_grow_longer},
    {"one_call_tries_one_huge_page", one_call_tries_one_huge_page},
    {"what_grows_is_brought_in_ahead", what_grows_is_brought_in_ahead},
    {"budget_is_kept", budget_is_kept},
    {"age_is_kept", age_is_kept},
    {"purged_memory_leaves", purged_memory_leaves},
    {"best_fit_of_the_dirty", best_fit_of_the_dirty},
    {"locked_memory_stays", locked_memory_stays},
    {"locked_memory_joined_at_last", locked_memory_joined_at_last},
    {"end_settles", end_settles},
    {"extends_nothing_in_vain", extends_nothing_in_vain},
    {"steps_down_where_room_is_little", steps_down_where_room_is_little},
    {"survives_refused_commits", survives_refused_commits},
    {"refused_bookkeeping", refused_bookkeeping},
    {"commits_follow_use", commits_follow_use},
    {"given_twice", given_twice},
    {"knows_what_was_freed", knows_what_was_freed},
    {"with_many_threads", with_many_threads},
    {"all_who_wait_go_on", all_who_wait_go_on},
};

SCENARIO_MAIN(scenarios)
