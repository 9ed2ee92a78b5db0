/* The clock of every workload, and sleep by it. */
#pragma once

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t moment_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline double seconds_between(uint64_t from_ns, uint64_t to_ns) { return (double)(to_ns - from_ns) * 1e-9; }

/* Sleep until the clock shows `when_ns`, whatever signals arrive, with no call of the allocator. */
static inline void sleep_until(uint64_t when_ns) {
    const struct timespec when = {.tv_sec = (time_t)(when_ns / 1000000000u), .tv_nsec = (long)(when_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0) {
    }
}
