/* A program that works in batches, with pauses longer than retain_ms: freed spans that were purged in a pause, and taken again in the next batch,
 * are retained longer. When the batches end, they go back all the same.
 *
 *   batches pauses|end */
#include <string.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"
#include "swing.h"
#include "tasks.h"

enum {
    BLOCKS = 150,
    SIZE = 500000,
    PAUSE_MS = 1500,
    BATCHES = 8,
    SLEEP_MS = 20000,
    BATCH_KIB = BLOCKS * (SIZE / 1024)
};

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: batches pauses|end");
    require_serving();
    swing(BLOCKS, SIZE);
    long before = minor_faults(), pages = BLOCKS * (SIZE / sysconf(_SC_PAGESIZE));
    for (int batch = 0; batch < BATCHES; batch++) {
        tasks_sleep(PAUSE_MS);
        swing(BLOCKS, SIZE);
    }
    long in_batches = minor_faults() - before;
    if (strcmp(arguments[1], "pauses") == 0) {
        EXPECT(in_batches <= BATCHES / 2 * pages, "%ld faults in %d batches of %ld pages", in_batches, BATCHES, pages);
    } else {
        size_t left = resident_kib();
        for (long end = tasks_clock() + SLEEP_MS; left > BATCH_KIB / 4 && tasks_clock() < end; left = resident_kib()) {
            tasks_sleep(100);
        }
        EXPECT(left <= BATCH_KIB / 4, "%zu KiB of %d are still there", left, BATCH_KIB);
    }
    return 0;
}
