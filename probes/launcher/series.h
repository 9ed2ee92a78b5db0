/* The resident set of the tree over time, in a bounded number of points.
 *
 * When the room is used up, neighbours are merged (the larger one stays) and the step doubles, so a long program has
 * as many points as a short one and no peak that was sampled is ever lost. */
#ifndef FREESTONE_LAUNCHER_SERIES_H
#define FREESTONE_LAUNCHER_SERIES_H

#include "json.h"

#include <stddef.h>
#include <stdint.h>

enum { SERIES_POINTS = 512 };

struct point {
    uint64_t at_ns; /* since the program's start */
    uint64_t resident_kib;
    uint32_t processes;
};

struct series {
    struct point points[SERIES_POINTS];
    size_t count;
    uint64_t step_ns; /* between samples, before the next merge */
    uint64_t next_ns; /* when the next sample is due, on the moment_now() clock */
    uint64_t peak_kib;
};

/* Starts with short steps (1, 2, 4... ms) up to `step_ns`, so that a program of a few milliseconds is seen too. */
void series_start(struct series *series, uint64_t start_ns, uint64_t step_ns);

/* Takes one sample and sets `next_ns`. A sample may cost at most 1 % of the time until the next one. */
void series_sample(struct series *series, uint64_t start_ns);

void series_write(const struct series *series, struct json *json);

#endif
