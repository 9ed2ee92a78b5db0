/* The census by ptrace: exact, allowed almost everywhere, too slow for a timed trial. Used in the rehearsal. */
#ifndef FREESTONE_LAUNCHER_TRACE_H
#define FREESTONE_LAUNCHER_TRACE_H

#include "census.h"

#include <sys/types.h>

/* Attaches to a child that waits at its gate. False, with the reason in `*refusal`, where the kernel refuses. */
bool trace_attach(struct census *census, pid_t pid, const char **refusal);

/* Handles what wait4 reported of a tracee: a stop, an event, an end. */
void trace_status(pid_t pid, int status);

#endif
