/* The decay time of freed spans: the policy by itself, and batches through the arena, by a clock of the test's own. */
#include "decay.h"

#include "ages.h"
#include "arena.h"
#include "expect.h"
#include "options.h"
#include "pattern.h"
#include "purge.h"
#include "scenario.h"

enum { MIB = 1 << 20, RETAIN_MS = 1000, LOOK_MS = 333, PROGRAMS = 2000 };

uint64_t __wrap_os_milliseconds(void);

static uint64_t now_ms = 12345;

uint64_t __wrap_os_milliseconds(void) { return now_ms; }

/* -- the policy ------------------------------------------------------------------------------------------------ */

/* Spans of `bytes` bytes freed at `freed` are purged `age` milliseconds later, and taken again when they would be `needed` milliseconds old. */
static uint32_t purged_and_taken(struct decay *decay, uint64_t freed, uint64_t age, size_t bytes, uint64_t needed) {
    decay_purged(decay, RETAIN_MS, freed + age, freed, bytes);
    decay_taken(decay, RETAIN_MS, freed + needed, bytes);
    return decay_ms(decay, RETAIN_MS);
}

static void retain_ms_at_first(void) {
    struct decay decay = {0};
    EXPECT(decay_ms(&decay, 0) == 0 && decay_ms(&decay, 1000) == 1000 && decay_ms(&decay, 86400000) == 86400000,
           "decay time without a purge");
    decay_taken(&decay, RETAIN_MS, 5, 100 * (size_t)MIB);
    EXPECT(decay_ms(&decay, RETAIN_MS) == RETAIN_MS, "%u ms before the first purge", decay_ms(&decay, RETAIN_MS));
}

static void twice_the_age_at_which_it_was_needed(void) {
    static const uint32_t needed[] = {1100, 1500, 2900, 3100, 5000, 6000};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        struct decay decay = {0};
        uint32_t after = purged_and_taken(&decay, 777, 1050, 8 * (size_t)MIB, needed[i]);
        uint32_t wanted = needed[i] < 3000 ? 2 * needed[i] : DECAY_MOST_MS;
        EXPECT(after == wanted, "%u ms after %u", after, needed[i]);
    }
}

static void nothing_for_what_no_decay_time_would_have_kept(void) {
    struct decay decay = {0};
    uint32_t after = purged_and_taken(&decay, 777, 1050, 8 * (size_t)MIB, DECAY_MOST_MS + 1);
    EXPECT(after == RETAIN_MS, "%u ms", after);
}

static void little_tells_nothing(void) {
    struct decay decay = {0};
    for (uint64_t at = 1; at < 1000000; at += 20000) {
        uint32_t after = purged_and_taken(&decay, at, 1050, DECAY_TRIAL - 1, 1100);
        EXPECT(after == RETAIN_MS, "%u ms for little", after);
    }
}

/* A third taken again is no reason for either. */
static void between_the_shares_it_stays(void) {
    struct decay decay = {0};
    uint32_t before = purged_and_taken(&decay, 1, 1050, 8 * (size_t)MIB, 2000);
    for (uint64_t at = 100000; at < 1000000; at += 20000) {
        decay_purged(&decay, RETAIN_MS, at + before, at, 9 * (size_t)MIB);
        decay_taken(&decay, RETAIN_MS, at + before + 10, 3 * (size_t)MIB);
        EXPECT(decay_ms(&decay, RETAIN_MS) == before, "%u ms, %u before", decay_ms(&decay, RETAIN_MS), before);
    }
}

/* A purge takes many pieces, and is one trial: each that is in vain halves the decay time once. */
static void halved_after_each_trial_in_vain(void) {
    struct decay decay = {0};
    uint32_t before = purged_and_taken(&decay, 1, 1050, 8 * (size_t)MIB, 5000);
    EXPECT(before == DECAY_MOST_MS, "%u ms", before);
    uint64_t freed = 100000;
    for (int sleep = 0; sleep < 5; sleep++) {
        for (uint64_t piece = 0; piece < 50; piece++) {
            decay_purged(&decay, RETAIN_MS, freed + before + piece, freed, 2 * (size_t)MIB);
            EXPECT(decay_ms(&decay, RETAIN_MS) == before, "%u ms during a purge", decay_ms(&decay, RETAIN_MS));
        }
        freed += 100000;
        decay_taken(&decay, RETAIN_MS, freed, 100 * (size_t)MIB);
        uint32_t after = decay_ms(&decay, RETAIN_MS);
        EXPECT(after == (before / 2 > RETAIN_MS ? before / 2 : RETAIN_MS), "%u ms after %u", after, before);
        before = after;
    }
    EXPECT(before == RETAIN_MS, "%u ms at the end", before);
}

/* The option may change at any time. */
static void bounded_by_retain_ms(void) {
    struct decay decay = {0};
    (void)purged_and_taken(&decay, 1, 1050, 8 * (size_t)MIB, 5000);
    EXPECT(decay_ms(&decay, 0) == 0 && decay_ms(&decay, 100) == 600 && decay_ms(&decay, 20000) == 20000,
           "%u, %u, %u ms", decay_ms(&decay, 0), decay_ms(&decay, 100), decay_ms(&decay, 20000));
}

/* Whatever comes, with a clock that goes back too. */
static void any_program_is_within_bounds(void) {
    uint64_t random = 7;
    for (int program = 0; program < PROGRAMS; program++) {
        struct decay decay = {0};
        uint64_t now = 20000 + pattern_below(&random, 1000000);
        for (int i = 0; i < 60; i++) {
            now = pattern_below(&random, 50) == 0 ? pattern_below(&random, now) + 20000
                                                  : now + pattern_below(&random, 4000);
            if (pattern_below(&random, 3) == 0) {
                decay_purged(&decay, RETAIN_MS, now, now - pattern_below(&random, 20000),
                             pattern_below(&random, 8 * (size_t)MIB));
            } else {
                decay_taken(&decay, RETAIN_MS, now, pattern_below(&random, 8 * (size_t)MIB));
            }
            uint32_t decays = decay_ms(&decay, RETAIN_MS);
            EXPECT(decays >= RETAIN_MS && decays <= DECAY_MOST_MS, "%u ms", decays);
        }
    }
}

/* -- batches --------------------------------------------------------------------------------------------------- */

enum { BATCHES = 12, LEARNED = 4, SPANS = 16, SLICES = 64, BATCH_MIB = SPANS * SLICES * SLICE_BYTES / MIB };

static void batch(void) {
    uint32_t slice[SPANS];
    bool zero;
    for (int i = 0; i < SPANS; i++) {
        slice[i] = arena_take(SLICES, 1, ARENA_NO_USE, &zero);
        EXPECT(slice[i] != 0, "no memory");
    }
    for (int i = 0; i < SPANS; i++) {
        EXPECT(arena_give(slice[i]), "not in use");
    }
}

/* The keeper looks while the program pauses. */
static void pause_for(uint64_t milliseconds) {
    size_t bytes = 0;
    for (uint64_t end = now_ms + milliseconds; now_ms < end; now_ms += bits_min(LOOK_MS, end - now_ms)) {
        while (arena_keep(&bytes)) {
        }
    }
}

/* Bytes purged in the batches after the first few; then the program ends them, and all goes back. */
static size_t purged_between_batches(uint64_t pause_ms) {
    EXPECT(arena_open(), "no street");
    size_t before = 0;
    for (int i = 0; i < BATCHES; i++) {
        before = i == LEARNED ? purge_total() : before;
        batch();
        pause_for(pause_ms);
    }
    size_t purged = purge_total() - before;
    pause_for(DECAY_MOST_MS + 2 * LOOK_MS);
    EXPECT(ages_bytes() == 0, "%zu KiB stay after batches every %ju ms", ages_bytes() >> 10, (uintmax_t)pause_ms);
    return purged;
}

static void batches_keep(uint64_t pause_ms) {
    size_t purged = purged_between_batches(pause_ms);
    EXPECT(purged == 0, "%zu MiB were purged between batches every %ju ms", purged / MIB, (uintmax_t)pause_ms);
}

static void batches_every_half_second(void) { batches_keep(500); }

static void batches_every_second_and_a_half(void) { batches_keep(1500); }

static void batches_every_five_seconds(void) { batches_keep(5000); }

/* No decay time is that long. */
static void batches_every_twenty_seconds(void) {
    enum { AGE_MS = 2 * RETAIN_MS };
    size_t purged = purged_between_batches(20000);
    EXPECT(purged >= (size_t)(BATCHES - LEARNED) * BATCH_MIB * MIB, "%zu MiB were purged", purged / MIB);
    batch();
    pause_for(AGE_MS);
    EXPECT(ages_bytes() == 0, "%zu KiB are kept for longer than retain_ms", ages_bytes() >> 10);
}

/* Memory beyond the budget goes at once, however soon it is taken again. */
static void no_more_is_kept_than_the_budget(void) {
    EXPECT(arena_open(), "no street");
    option_set(OPTION_RETAIN_MIB, BATCH_MIB / 4);
    for (int i = 0; i < BATCHES; i++) {
        batch();
        pause_for(1500);
        EXPECT(ages_bytes() <= (size_t)BATCH_MIB / 4 * MIB, "%zu KiB are kept", ages_bytes() >> 10);
    }
}

int main(int arguments, char **argument) {
    static const struct scenario scenarios[] = {
        {"retain_ms_at_first", retain_ms_at_first},
        {"twice_the_age_at_which_it_was_needed", twice_the_age_at_which_it_was_needed},
        {"nothing_for_what_no_decay_time_would_have_kept", nothing_for_what_no_decay_time_would_have_kept},
        {"little_tells_nothing", little_tells_nothing},
        {"between_the_shares_it_stays", between_the_shares_it_stays},
        {"halved_after_each_trial_in_vain", halved_after_each_trial_in_vain},
        {"bounded_by_retain_ms", bounded_by_retain_ms},
        {"any_program_is_within_bounds", any_program_is_within_bounds},
        {"batches_every_half_second", batches_every_half_second},
        {"batches_every_second_and_a_half", batches_every_second_and_a_half},
        {"batches_every_five_seconds", batches_every_five_seconds},
        {"batches_every_twenty_seconds", batches_every_twenty_seconds},
        {"no_more_is_kept_than_the_budget", no_more_is_kept_than_the_budget},
    };
    return scenario_main(scenarios, sizeof scenarios / sizeof *scenarios, arguments, argument);
}
