/* How long a test goes on: as often as its argument says, or, where that says `soak`, for FREESTONE_SOAK_SECONDS, so that
 * whoever starts the tests that soak knows when they will be over. Asked without touching the heap, and by signal
 * handlers. */
#ifndef FREESTONE_TESTS_SOAK_H
#define FREESTONE_TESTS_SOAK_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "expect.h"

struct soak {
    size_t turns; /* unless it goes by time */
    time_t end; /* of the monotonic clock; 0: it goes by turns */
};

static inline time_t soak_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static inline bool soak_wanted(const char *argument) { return strcmp(argument, "soak") == 0; }

/* Of an argument that is a number of seconds, or `soak`. */
static inline unsigned soak_seconds(const char *argument) {
    const char *seconds = soak_wanted(argument) ? getenv("FREESTONE_SOAK_SECONDS") : argument;
    EXPECT(seconds != NULL, "FREESTONE_SOAK_SECONDS is not set");
    return (unsigned)strtoul(seconds, NULL, 10);
}

/* Of an argument that is a number of turns, or `soak`. The time begins now. */
static inline struct soak soak_begin(const char *argument) {
    if (soak_wanted(argument)) {
        return (struct soak){.end = soak_now() + (time_t)soak_seconds(argument)};
    }
    return (struct soak){.turns = strtoul(argument, NULL, 10)};
}

/* Whether there is another turn after so many. */
static inline bool soak_goes_on(const struct soak *soak, size_t turns) {
    return soak->end != 0 ? soak_now() < soak->end : turns < soak->turns;
}

#endif
