/* The course of one run: from the started program until nothing of its tree is left.
 *
 *   running -> the first process ends -> lingering -> nothing left: done
 *      |                                    | survivors after --linger
 *      | --timeout, SIGINT, SIGTERM         v
 *      +------------------------------> terminating (SIGTERM) -> killing (SIGKILL, after --grace) -> done
 *
 * The wall time ends when the first process does: that is when whoever started it would go on. What it leaves behind
 * (a daemon, a background job) is waited for a little, then named and ended; with --whole-tree it is part of the run.
 * Where all of it ended by itself, the time to the end of the last process is known too. */
#ifndef FREESTONE_LAUNCHER_COURSE_H
#define FREESTONE_LAUNCHER_COURSE_H

#include "census.h"
#include "options.h"
#include "series.h"
#include "start.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

enum { SURVIVORS_NAMED = 16 };

struct survivor {
    pid_t pid;
    char program[256];
};

struct course {
    bool first_ended; /* false only when it could not even be killed */
    int status;       /* of the first process, as wait4 gives it */
    uint64_t wall_ns;
    uint64_t tree_wall_ns; /* to the end of the last process; that of the first where none outlived it */
    bool timed_out;
    int interrupted; /* the signal that stopped the launcher, 0: none */
    bool stopped;    /* somebody stopped the launcher for a while: what ended meanwhile was seen late */
    bool killed;     /* SIGTERM did not suffice */
    bool abandoned; /* something of the tree could not be killed (another user's, or stuck in the kernel) */
    struct rusage usage; /* summed over everything waited for; ru_maxrss is the largest */
    size_t orphans;      /* ended processes that had become the launcher's own children */
    struct survivor survivors[SURVIVORS_NAMED];
    size_t survivor_count; /* may exceed SURVIVORS_NAMED */
    struct series series;
};

/* Follows the started program to its end. `signals` is a signalfd for SIGCHLD, SIGCONT, SIGINT, SIGTERM and
 * SIGHUP. `traced`
 * says that stops are to be handed to the tracer; `sideband` that its buffers are to be emptied. */
void course_follow(struct course *course, struct start *start, const struct options *options, int signals, bool traced,
                   bool sideband);

#endif
