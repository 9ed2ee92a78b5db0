/* The one line of JSON, put together in a fixed buffer and written at once: printf would call malloc for its buffer. */
#pragma once

#include "program.h"

/* What one run of a timed loop came to. */
struct measurement {
    uint64_t operations; /* calls of the allocator; malloc with its free are two */
    double seconds;
    uint64_t checksum;
};

/* Begin the line with the program and all its parameters; one named "operations" is left out, for what was done stands
 * there. */
void report_open(const struct program *program);

/* operations, seconds, checksum. One of the next three follows. */
void report_measurement(struct measurement run);
/* floor_seconds, scaled up to the work of the run; `scale` is the share of it that the floor did, told as floor_scale. */
void report_floor(struct measurement floor, double scale);
/* The same where the work is in proportion to the operations. */
void report_floor_of(struct measurement floor, struct measurement run);
void report_no_floor(void);

void report_count(const char *key, uint64_t value);
void report_real(const char *key, double value);
void report_counts(const char *key, const uint64_t *values, size_t count);
void report_reals(const char *key, const double *values, size_t count);

/* What is added between the two is in an object of its own. */
void report_inner(const char *key);
void report_inner_end(void);

/* Sleep where --idle says so and add rss_kib_idle; add harness_kib, end the line, write it. All blocks are given back
 * before. */
void report_close(void);
