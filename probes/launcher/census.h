/* The list of what the kernel said happened to the processes of the tree, in the order of time.
 *
 * Two sources fill it: perf's side-band records (sideband.h) and ptrace stops (trace.h). Threads are left out. */
#ifndef FREESTONE_LAUNCHER_CENSUS_H
#define FREESTONE_LAUNCHER_CENSUS_H

#include "json.h"

#include <stdint.h>
#include <sys/types.h>

enum census_event_kind {
    CENSUS_FORK,  /* pid came from parent */
    CENSUS_EXEC,  /* pid became another program image; text: the kernel's short name of it (comm) */
    CENSUS_IMAGE, /* an executable file was mapped into pid; text: its path. The first one after an exec is the program */
    CENSUS_EXIT
};

struct census;

struct census *census_new(const char *source);

/* `text` is copied. Events may come in any order. */
void census_add(struct census *census, enum census_event_kind kind, uint64_t at_ns, pid_t pid, pid_t parent,
                const char *text);

/* Notes that events are missing; the first reason stays. */
void census_incomplete(struct census *census, const char *reason);

/* "census": {source, complete, reason, events: [[kind, seconds (monotonic), pid, parent | comm, path]...], files: every
 * path of CENSUS_IMAGE once}. A null census writes {source: "none", ...} with `refusal` as the reason. */
void census_write(struct census *census, const char *refusal, struct json *json);

#endif
