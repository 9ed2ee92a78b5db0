/* A program that works, pauses and works: what is purged in a pause and taken again in the next phase was purged too early, so that it
 * soon is not any more. When the program sleeps for good, it goes back all the same.
 *
 *   phases pauses|sleep */
#include <string.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"
#include "swing.h"
#include "tasks.h"

enum { BLOCKS = 40000, SIZE = 1000, STAYS = 10, PAUSE_MS = 700, PHASES = 12, PAGES = BLOCKS / 4, SLEEP_MS = 20000 };

static void *block[BLOCKS];

static void work(void) { swing_most(block, BLOCKS, SIZE, STAYS); }

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: phases pauses|sleep");
    require_serving();
    work();
    size_t full = resident_kib();
    long before = minor_faults();
    for (int phase = 0; phase < PHASES; phase++) {
        tasks_sleep(PAUSE_MS);
        work();
    }
    long in_phases = minor_faults() - before;
    if (strcmp(arguments[1], "pauses") == 0) {
        EXPECT(in_phases <= PHASES / 3 * PAGES, "%ld faults in %d phases of %d pages", in_phases, PHASES, PAGES);
    } else {
        size_t left = resident_kib();
        for (long end = tasks_clock() + SLEEP_MS; left > full / 2 && tasks_clock() < end; left = resident_kib()) {
            tasks_sleep(100);
        }
        EXPECT(left <= full / 2, "%zu KiB of %zu are still there", left, full);
    }
    return 0;
}
