/* Every time that the library remembers, by clocks that begin anywhere: about to pass 2^31 or 2^32 milliseconds, which are 25 and 50 days, and later. And
 * every wait, by a clock that stands still or goes back: it ends all the same. */
#include <pthread.h>

#include "ages.h"
#include "arena.h"
#include "expect.h"
#include "gate.h"
#include "guarded.h"
#include "huge.h"
#include "keeper.h"
#include "lock.h"
#include "options.h"
#include "patience.h"
#include "purge.h"
#include "refaults.h"
#include "scenario.h"
#include "turns.h"

/* The library's clocks, which the linker puts in the place of those of os.h. */
uint64_t __wrap_os_nanoseconds(void);
uint64_t __wrap_os_milliseconds(void);

static _Atomic uint64_t clock_ns, backwards; /* ... and how far it goes back at each look */

uint64_t __wrap_os_nanoseconds(void) { return atomic_fetch_sub(&clock_ns, atomic_load(&backwards)); }

uint64_t __wrap_os_milliseconds(void) { return __wrap_os_nanoseconds() / 1000000; }

static void set_ms(uint64_t milliseconds) { atomic_store(&clock_ns, milliseconds * 1000000); }

static void pass_ms(uint64_t milliseconds) { atomic_fetch_add(&clock_ns, milliseconds * 1000000); }

#define YEAR_MS (UINT64_C(365) * 24 * 3600 * 1000)
static const uint64_t day = UINT64_C(24) * 3600 * 1000;

/* Half a second before what is of note, and before half of that. */
static const uint64_t starts[] = {1,
                                  (UINT64_C(1) << 31) - 500,
                                  (UINT64_C(1) << 32) - 500,
                                  (UINT64_C(3) << 31) - 500,
                                  (UINT64_C(1) << 33) - 500,
                                  (UINT64_C(1) << 63) / 1000000 - 500, /* 2^63 ns are 292 years */
                                  YEAR_MS * 500};

/* How much later a program may come back to it: what had an end is over then. */
static uint64_t later[] = {0,
                           UINT64_C(1) << 30,
                           (UINT64_C(1) << 31) - 1000,
                           UINT64_C(1) << 31,
                           (UINT64_C(1) << 31) + 1000,
                           (UINT64_C(1) << 32) - 1000,
                           UINT64_C(1) << 32,
                           YEAR_MS};

static uint64_t begun;

/* Each start in a process of its own, as the layers keep what they remember. */
static void at_every_start(void (*run)(void)) {
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        begun = starts[i];
        set_ms(begun);
        pid_t child = fork();
        EXPECT(child >= 0, "no child");
        if (child == 0) {
            run();
            exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "from %llu ms on: wait status %#x",
               (unsigned long long)begun, (unsigned)status);
    }
}

#define AT(what, milliseconds, after) \
    "%s at %llu ms, %llu ms after", what, (unsigned long long)(milliseconds), (unsigned long long)(after)

/* `holds` of what was set at the start: until `ends_ms` later it is so, and never more after that. */
static void expect_until(const char *what, bool (*holds)(void), uint64_t ends_ms) {
    set_ms(begun);
    EXPECT(holds(), AT(what, begun, 0));
    set_ms(begun + ends_ms - 1);
    EXPECT(holds(), AT(what, begun, ends_ms - 1));
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        set_ms(begun + ends_ms + 1 + later[i]);
        EXPECT(!holds(), AT(what, begun, ends_ms + 1 + later[i]));
    }
    set_ms(begun);
}

/* A keeper may be started, also under filters, and in this child of a fork. */
static void open_gate(void) {
    gate_open();
    atomic_store(&gate.page->process, GATE_ANY);
    option_set(OPTION_KEEPER, KEEPER_ALWAYS);
}

/* -- what is remembered -------------------------------------------------------------------------------------- */

static bool huge_pages_are_off(void) {
    uint32_t use = arena_use_of_block((size_t)HUGE_OBJECT << SLICE_BITS);
    huge_saw(use, HUGE_OBJECT, (struct huge_sight){SIGHT_DENSE, HUGE_ENDS});
    return !huge_is_wanted(use, HUGE_OBJECT);
}

static void huge_pages_rest(void) {
    EXPECT(arena_open(), "no street");
    EXPECT(!huge_pages_are_off(), "there are no huge pages at the start");
    huge_rest();
    expect_until("no huge pages", huge_pages_are_off, 1000);
}

static void huge_pages_come_back(void) { at_every_start(huge_pages_rest); }

static bool dirty_memory_stays(void) { return !purge_is_due(); }

static void dirty_memory(void) {
    EXPECT(arena_open(), "no street");
    option_set(OPTION_RETAIN_MIB, 4096);
    option_set(OPTION_RETAIN_MS, 10000);
    option_set(OPTION_KEEPER, 0);
    bool zero;
    uint32_t slice = arena_take(16, 1, ARENA_NO_USE, &zero);
    EXPECT(slice != 0 && arena_give(slice) && ages_slices() != 0, "nothing is dirty");
    expect_until("kept", dirty_memory_stays, 10000);
}

static void dirty_memory_is_due(void) { at_every_start(dirty_memory); }

static bool keeper_stays_away_now(void) { return !keeper_hurry(); }

static void keeper_is_refused(void) {
    open_gate();
    EXPECT(keeper_leave(false), "nothing was opened");
    keeper_stay_away();
    expect_until("no keeper", keeper_stays_away_now, 1000);
}

static void keeper_is_tried_again(void) { at_every_start(keeper_is_refused); }

static void keeper_does_not_come(void) {
    const uint64_t late = 2000;
    gate_open();
    atomic_store(&gate.page->keeper, 1 << 30);
    EXPECT(keeper_hurry(), "the keeper was not asked");
    expect_until("the keeper is waited for", keeper_hurry, late);
}

static void keeper_is_not_waited_for(void) { at_every_start(keeper_does_not_come); }

static struct refaults refaults;

static bool slabs_rest(void) { return !refaults_are_due(&refaults, __wrap_os_milliseconds(), 1000); }

static void slabs_were_looked_at(void) {
    refaults_note(&refaults, __wrap_os_milliseconds(), 0, 0);
    expect_until("slabs rest", slabs_rest, refaults.due + 1000 - begun);
}

static void slabs_are_due(void) { at_every_start(slabs_were_looked_at); }

static void guarded_blocks(void) {
    enum { MOST = 100000 };
    option_set(OPTION_GUARD, 100);
    EXPECT(guarded_open(), "no guarded blocks");
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        int taken = 0;
        pass_ms(later[i] + 1000);
        while (taken < MOST && guarded_may_take()) {
            taken++;
        }
        EXPECT(taken > 0 && taken < MOST, AT("guarded blocks", begun, later[i]));
    }
}

static void guarded_blocks_are_allowed(void) { at_every_start(guarded_blocks); }

static bool others_turn(void) {
    return !gate_is_forking() && stamp_is_ahead(atomic_load(&turns.open_until), __wrap_os_nanoseconds(), 5000000);
}

static void gate_was_closed(void) {
    const uint64_t turn = 5; /* the longest */
    gate_open();
    turns_note_closed();
    turns_note_refused();
    pass_ms(1000);
    begun += 1000;
    turns_note_open();
    expect_until("the turn of those kept out", others_turn, turn);
}

static void turns_end(void) { at_every_start(gate_was_closed); }

/* -- a clock that goes back: a process that was saved, and goes on where the kernel began later -------------- */

static void nothing_is_off_for_days(void) {
    EXPECT(arena_open(), "no street");
    open_gate();
    set_ms(100 * day);
    huge_rest();
    EXPECT(keeper_leave(false), "nothing was opened");
    keeper_stay_away();
    refaults_note(&refaults, 100 * day, 0, 0);
    turns_note_refused();
    turns_note_open();
    set_ms(day);
    EXPECT(!huge_pages_are_off(), "huge pages are off until the clock is where it was");
    EXPECT(!keeper_stays_away_now(), "there is no keeper until the clock is where it was");
    EXPECT(!slabs_rest(), "slabs rest until the clock is where it was");
    EXPECT(!others_turn(), "forks wait until the clock is where it was");
}

/* -- waits --------------------------------------------------------------------------------------------------- */

static bool never(void) { return false; }

static struct lock lock;

/* Each returns: a wait that does not would be ended by the test's time. Of those kept out one waits for the gate, and forks wait for one. */
static void wait_for_everything(void) {
    struct patience patience = patience_begin();
    lock_take(&lock);
    EXPECT(!lock_take_within(&lock, &patience), "a lock was taken twice");
    lock_free(&lock);
    EXPECT(!gate_close(never, 20), "somebody inside was not seen");
    turns_note_refused();
    turns_await();
    (void)turns_await_opening();
    gate_reopen();
    atomic_store(&gate.page->keeper, 1 << 30);
    EXPECT(keeper_leave(false), "nothing was opened");
    keeper_return(true);
    atomic_store(&gate.page->keeper, 0);
}

static void waits_end_by_a_clock_that_stands_still(void) {
    gate_open();
    wait_for_everything();
}

static void waits_end_by_a_clock_that_goes_back(void) {
    gate_open();
    set_ms(100 * day);
    atomic_store(&backwards, 1000);
    wait_for_everything();
    atomic_store(&backwards, UINT64_C(1) << 40);
    wait_for_everything();
}

/* A word that changes at each look lets nobody sleep. */
static void naps_that_end_early_are_counted(void) {
    enum { LIMIT_MS = 20, MOST = LIMIT_MS * 1000 + 1 };
    struct patience patience = patience_begin();
    int naps = 0;
    while (naps < MOST && !patience_ended(&patience, false, 1, LIMIT_MS)) {
        naps++;
    }
    EXPECT(naps < MOST, "%d naps by a clock that stands still", naps);
    for (int slept = 0; slept < LIMIT_MS; slept++) {
        patience = patience_begin();
        for (int i = 0; i <= slept; i++) {
            EXPECT(!patience_ended(&patience, true, 1, LIMIT_MS), "it ends after %d ms", i + 1);
        }
    }
}

/* -- the keeper's own ---------------------------------------------------------------------------------------- */

static _Atomic uint32_t looks;

size_t __wrap_keeping_look(bool *more);
size_t __wrap_keeping_look(bool *more) {
    *more = false;
    atomic_fetch_add(&looks, 1);
    return 0;
}

static void keeper_lives_by_a_clock_that_stands_still(void) {
    if (SCENARIO_SANITIZED) {
        expect_skip("a sanitizer has no keeper");
    }
    open_gate();
    keeper_wish();
    keeper_serve();
    while (atomic_load(&looks) == 0 || atomic_load(&gate.page->keeper) != 0) {
        os_nap(10);
    }
}

static const struct scenario scenarios[] = {
    {"huge_pages_come_back", huge_pages_come_back},
    {"dirty_memory_is_due", dirty_memory_is_due},
    {"keeper_is_tried_again", keeper_is_tried_again},
    {"keeper_is_not_waited_for", keeper_is_not_waited_for},
    {"slabs_are_due", slabs_are_due},
    {"guarded_blocks_are_allowed", guarded_blocks_are_allowed},
    {"turns_end", turns_end},
    {"nothing_is_off_for_days", nothing_is_off_for_days},
    {"waits_end_by_a_clock_that_stands_still", waits_end_by_a_clock_that_stands_still},
    {"waits_end_by_a_clock_that_goes_back", waits_end_by_a_clock_that_goes_back},
    {"naps_that_end_early_are_counted", naps_that_end_early_are_counted},
    {"keeper_lives_by_a_clock_that_stands_still", keeper_lives_by_a_clock_that_stands_still},
};

SCENARIO_MAIN(scenarios)
