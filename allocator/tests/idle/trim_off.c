/* mallopt(M_TRIM_THRESHOLD, -1): memory that was touched once stays, as a program counts on that may not wait for the kernel. Taken back, it goes
 * to the kernel as before.
 *
 *   trim_off [meanwhile|with-a-keeper|keeper-ends|by-two|early] */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

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

/* Nothing will be due for a keeper that is at work then. */
static void keeper_ends(void) {
    swing(BLOCKS, SIZE);
    EXPECT(mallopt(M_TRIM_THRESHOLD, -1) == 1, "mallopt refused");
    EXPECT(tasks_await_keeper(false, IDLE_MS), "there is a keeper still");
}

enum { ROUNDS = 20000 };
static atomic_int round_of_other, round_of_main;

static void *say_so_too(void *unused) {
    for (int round = 1; round <= ROUNDS; round++) {
        while (atomic_load(&round_of_main) < round) {
        }
        (void)mallopt(M_TRIM_THRESHOLD, -1);
        atomic_store(&round_of_other, round);
    }
    return unused;
}

/* Two threads say so at once, again and again, and it is taken back. */
static void by_two(void) {
    pthread_t other;
    EXPECT(pthread_create(&other, NULL, say_so_too, NULL) == 0, "no thread");
    for (int round = 1; round <= ROUNDS; round++) {
        atomic_store(&round_of_main, round);
        (void)mallopt(M_TRIM_THRESHOLD, -1);
        while (atomic_load(&round_of_other) < round) {
        }
        (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    }
    pthread_join(other, NULL);
    swing(BLOCKS, SIZE);
    size_t left_kib = tasks_await_resident(RESIDENT_KIB_MOST);
    EXPECT(left_kib <= RESIDENT_KIB_MOST, "%zu KiB are still resident", left_kib);
}

/* Before the first allocation. */
__attribute__((constructor)) static void say_so_early(void) {
    if (getenv("EARLY") != NULL) {
        EXPECT(mallopt(M_TRIM_THRESHOLD, -1) == 1, "mallopt refused");
    }
}

/* The environment has forbidden a keeper. */
static void early(void) {
    EXPECT(mallopt(M_TRIM_THRESHOLD, 128 << 10) == 1, "mallopt refused");
    swing(BLOCKS, SIZE);
    EXPECT(!tasks_await_keeper(true, KEEPER_MS), "there is a keeper");
}

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {
    {"meanwhile", freed_meanwhile},
    {"with-a-keeper", with_a_keeper},
    {"keeper-ends", keeper_ends},
    {"by-two", by_two},
    {"early", early},
};

int main(int count, char **arguments) {
    require_serving();
    for (size_t i = 0; count > 1 && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(arguments[1], ways[i].name) == 0) {
            ways[i].run();
            return 0;
        }
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
