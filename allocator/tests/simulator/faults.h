/* The faults that can be planted, in the order of variants.toml: number n stands at n - 1. */
#ifndef FREESTONE_SIMULATOR_FAULTS_H
#define FREESTONE_SIMULATOR_FAULTS_H

enum { KINDS_MOST = 6 };

struct fault {
    const char *name, *breaks;
    const char *found_as[KINDS_MOST]; /* kinds of failure, of which it has to be one; none: it survives */
    unsigned long seed; /* that finds it soon: a test need not look for long */
};
extern const struct fault faults[]; /* the last has no name */

#endif
