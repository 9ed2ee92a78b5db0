/* A filter of system calls, as sandboxes, containers and service managers set them: a list of calls that are let
 * through, or of calls that are not, and what becomes of the others. */
#ifndef FREESTONE_TESTS_FILTER_H
#define FREESTONE_TESTS_FILTER_H

#include <stdbool.h>
#include <stddef.h>

enum { FILTER_KILLS = -1 }; /* instead of an errno value: ends the process by SIGSYS */

struct filter {
    const long *numbers;
    size_t count;
    bool only_these; /* let through, everything else is refused; else these are refused */
    int refusal; /* errno value, or FILTER_KILLS */
};

/* Enters it, for the calling thread and what it starts, or for all threads of the process. Skips the program where
 * the kernel does not allow that. */
void filter_enter(const struct filter *filter, bool all_threads);

#endif
