/* The lock: one holder at a time, nobody left asleep, free again after a fork, given up on the way to abort. */
#include "lock.h"

#include <pthread.h>
#include <sched.h>

#include "os.h"
#include "scenario.h"

enum { THREADS = 16, TURNS = 20000, NAPS = 300 };

static struct lock lock;
/* Written by the holder alone, without atomics: two holders at once lose counts, and a race detector sees them. */
static uint64_t count, shadow;
static _Atomic unsigned gone_on;
static _Atomic unsigned inside;

static void take_turn(void) {
    lock_take(&lock);
    EXPECT(atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed) == 0, "somebody else holds it");
    EXPECT(count == shadow, "what the last holder wrote is not seen: %llu and %llu", (unsigned long long)count,
           (unsigned long long)shadow);
    count++;
    shadow++;
    atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
    lock_free(&lock);
}

static void *run_turns(void *argument) {
    for (int turn = 0; turn < TURNS; turn++) {
        take_turn();
    }
    return argument;
}

/* Holds it for longer than others spin, so that they sleep: each of them must be woken. */
static void *run_naps(void *argument) {
    for (int nap = 0; nap < NAPS; nap++) {
        lock_take(&lock);
        count++;
        if (nap % 3 == 0) {
            usleep(50);
        } else {
            sched_yield();
        }
        lock_free(&lock);
    }
    return argument;
}

static void run_threads(unsigned threads, void *(*run)(void *), uint64_t each) {
    pthread_t thread[256];
    EXPECT(threads <= 256, "%u threads", threads);
    for (unsigned i = 0; i < threads; i++) {
        EXPECT(pthread_create(&thread[i], NULL, run, NULL) == 0, "no thread");
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    EXPECT(count == threads * each, "%llu turns of %llu", (unsigned long long)count,
           (unsigned long long)(threads * each));
    EXPECT(atomic_load(&lock.state) == 0, "state %u is left", atomic_load(&lock.state));
}

static void one_holder_at_a_time(void) { run_threads(THREADS, run_turns, TURNS); }

/* A wake-up that is lost leaves a thread asleep for ever; the alarm tells. */
static void nobody_left_asleep(void) {
    alarm(100);
    unsigned threads = 4 * os_cpus() < THREADS ? THREADS : 4 * os_cpus();
    run_threads(threads > 256 ? 256 : threads, run_naps, NAPS);
}

static void *wait_once(void *argument) {
    lock_take(&lock);
    lock_free(&lock);
    return argument;
}

/* A child finds the lock held by the thread that forked and awaited by others; reset, it is free. */
static void free_after_fork(void) {
    pthread_t thread;
    lock_take(&lock);
    EXPECT(pthread_create(&thread, NULL, wait_once, NULL) == 0, "no thread");
    while (atomic_load(&lock.state) != 2) {
        sched_yield();
    }
    pid_t child = fork();
    EXPECT(child >= 0, "no child");
    if (child == 0) {
        alarm(20);
        lock_reset(&lock);
        lock_take(&lock);
        lock_free(&lock);
        _exit(atomic_load(&lock.state) == 0 ? 0 : 1);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "wait status %#x", (unsigned)status);
    lock_free(&lock);
    pthread_join(thread, NULL);
}

static void taken_over_by_who_reports(void) {
    alarm(20);
    lock_take(&lock);
    lock_report();
    lock_report(); /* a handler on the same thread */
    lock_take(&lock);
    lock_take(&lock);
    lock_free(&lock);
    EXPECT(lock_try(&lock), "a lock that was taken over is not free");
}

static void *take_and_free(void *unused) {
    lock_take(&lock);
    atomic_fetch_add(&gone_on, 1);
    lock_free(&lock);
    return unused;
}

/* They wait for seconds, and then one after the other goes on. */
static void taken_over_beside_a_report(void) {
    enum { WAITERS = 3 };
    alarm(60);
    pthread_t thread[WAITERS];
    lock_take(&lock);
    EXPECT(pthread_create(&thread[0], NULL, take_and_free, NULL) == 0, "no thread");
    while (atomic_load(&lock.state) != 2) { /* it sleeps */
        sched_yield();
    }
    lock_report();
    for (int i = 1; i < WAITERS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, take_and_free, NULL) == 0, "no thread");
    }
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(thread[i], NULL);
    }
    EXPECT(atomic_load(&gone_on) == WAITERS, "%u threads went on of %d", atomic_load(&gone_on), WAITERS);
    EXPECT(lock_try(&lock), "a lock that was taken over is not free");
}

static const struct scenario scenarios[] = {
    {"one_holder_at_a_time", one_holder_at_a_time},
    {"nobody_left_asleep", nobody_left_asleep},
    {"free_after_fork", free_after_fork},
    {"taken_over_by_who_reports", taken_over_by_who_reports},
    {"taken_over_beside_a_report", taken_over_beside_a_report},
};

SCENARIO_MAIN(scenarios)
