/* mallopt(M_TRIM_THRESHOLD, -1): memory that was touched once stays, as a program counts on that may not wait for the kernel. Taken back, it goes
 * to the kernel as before. */
#include <malloc.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "swing.h"
#include "tasks.h"

enum { BLOCKS = 400, SIZE = 200000, REST_MS = 2500, FAULTS_MOST = 2000, RESIDENT_KIB_MOST = 40 << 10 };

static long faults_of_swing(void) {
    long before = minor_faults();
    swing(BLOCKS, SIZE);
    return minor_faults() - before;
}

/* What was freed meanwhile has asked nobody to give it back, and no call follows that might. */
static void freed_meanwhile(void) {
    EXPECT(mallopt(M_TRIM_THRESHOLD, -1) == 1, "mallopt refused");
    swing(BLOCKS, SIZE);
    EXPECT(mallopt(M_TRIM_THRESHOLD, 128 << 20) == 1, "mallopt refused");
    size_t left_kib = tasks_await_resident(RESIDENT_KIB_MOST);
    EXPECT(left_kib <= RESIDENT_KIB_MOST, "%zu KiB are still resident", left_kib);
}

enum { SMALL = 200000, SMALL_BYTES = 1000, STAYS = 100, KEEPER_MS = 500, WAIT_MS = 1500 };

static void *small[SMALL];

static void swing_small(void) { swing_most(small, SMALL, SMALL_BYTES, STAYS); }

/* The keeper is at work already when the program says that nothing is to be given back, and again when it takes that back: it heeds both at once,
 * in slabs too. */
static void with_a_keeper(void) {
    swing_small();
    tasks_sleep(KEEPER_MS);
    EXPECT(mallopt(M_TRIM_THRESHOLD, -1) == 1, "mallopt refused");
    size_t then_kib = resident_kib();
    tasks_sleep(WAIT_MS);
    size_t now_kib = resident_kib();
    EXPECT(now_kib + RESIDENT_KIB_MOST / 4 > then_kib, "%zu KiB of %zu are left", now_kib, then_kib);
    EXPECT(mallopt(M_TRIM_THRESHOLD, 128 << 20) == 1, "mallopt refused");
    swing_small();
    size_t left_kib = tasks_await_resident(RESIDENT_KIB_MOST);
    EXPECT(left_kib <= RESIDENT_KIB_MOST, "%zu KiB are still resident", left_kib);
}

int main(int count, char **arguments) {
    require_serving();
    if (count > 1 && strcmp(arguments[1], "with-a-keeper") == 0) {
        with_a_keeper();
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "meanwhile") == 0) {
        freed_meanwhile();
        return 0;
    }
    EXPECT(mallopt(M_TRIM_THRESHOLD, -1) == 1, "mallopt refused");
    swing(BLOCKS, SIZE);
    for (int round = 0; round < 2; round++) {
        tasks_sleep(REST_MS);
        long faults = faults_of_swing();
        EXPECT(faults < FAULTS_MOST, "%ld faults in round %d", faults, round);
    }
    EXPECT(mallopt(M_TRIM_THRESHOLD, 128 << 20) == 1, "mallopt refused");
    swing(BLOCKS, SIZE);
    size_t left_kib = tasks_await_resident(RESIDENT_KIB_MOST);
    EXPECT(left_kib <= RESIDENT_KIB_MOST, "%zu KiB are still resident", left_kib);
    return 0;
}
