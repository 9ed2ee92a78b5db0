/* The faults that can be planted, in the order of variants.toml: number n stands at n - 1. */
#ifndef FREESTONE_SIMULATOR_FAULTS_H
#define FREESTONE_SIMULATOR_FAULTS_H

struct fault {
    const char *name, *breaks;
    unsigned long seed; /* that finds it soon: a test need not look for long */
};
extern const struct fault faults[]; /* the last has no name */

#endif
