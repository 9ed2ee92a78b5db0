/* How long the keeper is waited for, by forks and by what is due, and when there is a wish for it. There is none here: a number
 * stands for a thread that never comes. */
#include "expect.h"
#include "gate.h"
#include "keeper.h"
#include "options.h"
#include "os.h"
#include "scenario.h"

uint64_t __wrap_os_nanoseconds(void);
uint64_t __wrap_os_milliseconds(void);
bool __wrap_os_wait_for_thread(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds);

static uint64_t clock_ns;
static uint32_t naps, runs_after; /* it gets a CPU after so many naps; 0: never */

uint64_t __wrap_os_nanoseconds(void) { return clock_ns; }

uint64_t __wrap_os_milliseconds(void) { return clock_ns / 1000000; }

bool __wrap_os_wait_for_thread(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds) {
    (void)word, (void)expected;
    naps++;
    if (naps == runs_after) {
        atomic_store(&gate.page->keeper, 0);
    }
    clock_ns += (uint64_t)milliseconds * 1000000;
    return true;
}

static uint32_t naps_of_a_fork(void) {
    naps = 0;
    EXPECT(keeper_leave(false), "nothing was opened");
    keeper_return(true);
    return naps;
}

/* A thread of a real-time class keeps the CPU from it: the first fork waits for it, and those after that a nap each, until it has come. */
static void who_does_not_hear_is_waited_for_once(void) {
    enum { NUMBER = 1 << 30 };
    gate_open();
    EXPECT(naps_of_a_fork() == 0, "%u naps for nobody", naps);
    atomic_store(&gate.page->keeper, NUMBER);
    EXPECT(naps_of_a_fork() >= 20, "%u naps the first time", naps);
    for (int fork = 0; fork < 3; fork++) {
        EXPECT(naps_of_a_fork() <= 2, "%u naps for one that did not come before", naps);
    }
    atomic_store(&gate.page->keeper, 0);
    EXPECT(naps_of_a_fork() == 0, "%u naps for nobody", naps);
    atomic_store(&gate.page->keeper, NUMBER);
    EXPECT(naps_of_a_fork() >= 20, "%u naps after it had come", naps);
    atomic_store(&gate.page->keeper, 0);
}

static uint32_t naps_of_a_call(void) {
    naps = 0;
    EXPECT(keeper_leave_first(false), "nothing was opened");
    keeper_return(true);
    return naps;
}

/* The kernel refuses a namespace to a process of two threads: the call waits for a keeper that gets no CPU, though a fork before it has waited in
 * vain. One that never runs is waited for once. */
static void a_call_that_it_would_spoil_waits_until_it_has_run(void) {
    enum { NUMBER = 1 << 30, LONG = 500 };
    gate_open();
    atomic_store(&gate.page->keeper, NUMBER);
    EXPECT(naps_of_a_fork() < LONG, "a fork waited for %u naps", naps);
    runs_after = LONG;
    EXPECT(naps_of_a_call() == LONG && atomic_load(&gate.page->keeper) == 0, "the call came after %u naps", naps);
    runs_after = 0;
    atomic_store(&gate.page->keeper, NUMBER);
    EXPECT(naps_of_a_call() > LONG, "one that never runs was waited for during %u naps", naps);
    EXPECT(naps_of_a_call() <= 2, "%u naps for one that did not come before", naps);
    EXPECT(naps_of_a_fork() <= 2, "%u naps of a fork for one that did not come before", naps);
    atomic_store(&gate.page->keeper, 0);
    EXPECT(naps_of_a_call() == 0, "%u naps for nobody", naps);
    atomic_store(&gate.page->keeper, NUMBER);
    EXPECT(naps_of_a_call() > LONG, "%u naps after it had come", naps);
    atomic_store(&gate.page->keeper, 0);
}

/* Who frees leaves what is due to the keeper, as long as it may be on its way; one that has not come for seconds gets no turn. */
static void what_is_due_is_not_left_to_one_that_does_not_come(void) {
    const uint64_t second = 1000000000;
    gate_open();
    atomic_store(&gate.page->keeper, 1 << 30);
    clock_ns = 100 * second;
    EXPECT(keeper_hurry(), "the keeper was not asked");
    clock_ns += second;
    EXPECT(keeper_hurry(), "the keeper is not waited for");
    clock_ns += 2 * second;
    EXPECT(!keeper_hurry(), "it is waited for since three seconds");
    atomic_store(&gate.page->keeper, 0);
}

/* Every slow path reads the word: where there is to be no keeper it stays as it is. */
static void nothing_is_wished_for_without_a_keeper(void) {
    gate_open();
    option_set(OPTION_KEEPER, 0);
    keeper_wish();
    EXPECT(!keeper_is_wished() && !keeper_hurry() && !keeper_is_wished(), "there is a wish for none");
    option_set(OPTION_KEEPER, 1);
    keeper_wish();
    EXPECT(keeper_is_wished(), "a wish is not written");
    option_set(OPTION_KEEPER, 0); /* mallopt may say so at any time: what was wished for before is taken back */
    keeper_serve();
    EXPECT(!keeper_is_wished(), "a wish for none stays, and every slow path asks again");
}

static const struct scenario scenarios[] = {
    {"who_does_not_hear_is_waited_for_once", who_does_not_hear_is_waited_for_once},
    {"a_call_that_it_would_spoil_waits_until_it_has_run", a_call_that_it_would_spoil_waits_until_it_has_run},
    {"what_is_due_is_not_left_to_one_that_does_not_come", what_is_due_is_not_left_to_one_that_does_not_come},
    {"nothing_is_wished_for_without_a_keeper", nothing_is_wished_for_without_a_keeper},
};

SCENARIO_MAIN(scenarios)
