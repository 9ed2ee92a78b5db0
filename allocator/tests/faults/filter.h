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

/* How a program comes by a filter. */
enum filter_way {
    FILTER_BY_PRCTL,         /* prctl(PR_SET_SECCOMP) */
    FILTER_BY_SYSCALL,       /* syscall(SYS_seccomp) */
    FILTER_BY_SYSCALL_PRCTL, /* syscall(SYS_prctl, PR_SET_SECCOMP) */
    FILTER_BY_ITSELF, /* without libc, but for a prctl(PR_SET_NO_NEW_PRIVS) before */
    FILTER_WAYS
};

/* The same for the calling thread, in one way alone. That no new privileges are wanted is said, by the same way, only where the kernel asks
 * for it, so that the filter itself is what a library may see. */
void filter_enter_by(const struct filter *filter, enum filter_way way);

#endif
