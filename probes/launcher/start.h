/* Starting the program: its files, its session, its exec, and what exactly went wrong when it could not be started.
 *
 * The child shares the launcher's memory until it executes (clone with CLONE_VM|CLONE_VFORK): no page is copied, so
 * no fault of the launcher's is charged to the program, and an error of exec is simply a value in memory. The kernel
 * hands the high-water mark of the memory a process leaves at exec on to its ru_maxrss, hence the launcher is small. */
#ifndef FREESTONE_LAUNCHER_START_H
#define FREESTONE_LAUNCHER_START_H

#include "options.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum start_failure {
    START_FINE,
    START_NOT_FOUND,      /* no such file, or not on PATH */
    START_NO_INTERPRETER, /* the file is there, its ELF interpreter or #! program is not */
    START_NOT_EXECUTABLE, /* no execute permission, or a directory */
    START_BAD_FORMAT,     /* ENOEXEC: not a program for this machine, or a script without #! */
    START_FILES,          /* stdin, stdout or stderr could not be opened */
    START_DIRECTORY,      /* could not enter the directory */
    START_OTHER           /* anything else: memory, limits, too long an argument list */
};

struct launch;

struct start {
    pid_t pid;      /* > 0 when there is a child to wait for, which holds after a failed exec too */
    uint64_t at_ns; /* just before the exec, on the moment_now() clock; 0: not there yet */
    uint64_t floor_kib; /* high-water mark of the launcher at that moment: no ru_maxrss below it can be seen */
    enum start_failure failure;
    int error; /* errno that goes with it */
    int gate;  /* what a traced child waits for; -1: none */
    struct launch *launch;
};

/* `mask` is the signal mask the program gets; the caller has blocked its own signals. With `traced` the child stops
 * until the caller writes to the gate (see start_release): it is a plain fork then, because the caller has to attach
 * first. */
struct start start_program(const struct options *options, const sigset_t *mask, bool traced);

/* Lets a traced child go on to its exec. */
void start_release(struct start *start);

/* Takes over what the child has reported so far. Needed for a traced child only, once it has ended or executed. */
void start_settle(struct start *start);

/* "not found", "not executable", ...: the word for the result. */
const char *start_failure_name(enum start_failure failure);

#endif
