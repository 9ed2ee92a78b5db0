/* How long the keeper is waited for. There is none here: a number stands for a thread that never comes. */
#include "expect.h"
#include "gate.h"
#include "keeper.h"
#include "os.h"
#include "scenario.h"

uint64_t __wrap_os_nanoseconds(void);
void __wrap_os_wait_for_thread(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds);

static uint64_t clock_ns;
static uint32_t naps;

uint64_t __wrap_os_nanoseconds(void) { return clock_ns; }

void __wrap_os_wait_for_thread(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds) {
    (void)word, (void)expected;
    naps++;
    clock_ns += (uint64_t)milliseconds * 1000000;
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

static const struct scenario scenarios[] = {
    {"who_does_not_hear_is_waited_for_once", who_does_not_hear_is_waited_for_once},
};

SCENARIO_MAIN(scenarios)
