/* The launcher's clock: CLOCK_MONOTONIC in nanoseconds, the clock the witness and the side-band records use too. */
#ifndef FREESTONE_LAUNCHER_MOMENT_H
#define FREESTONE_LAUNCHER_MOMENT_H

#include <stdint.h>
#include <time.h>

static inline uint64_t moment_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
