/* Who called: return addresses, for reports. Leaf above os. Two files find what is needed of libc: trace_loaded.c, in the shared library, and
 * trace_linked.c, in the static one. */
#ifndef FREESTONE_TRACE_H
#define FREESTONE_TRACE_H

#include "bits.h"

enum { TRACE_MOST = 16 };

struct trace {
    uintptr_t thread; /* as pthread_self has it, which costs no system call; 0 while nothing was noted */
    uint32_t count;
    uintptr_t frames[TRACE_MOST]; /* the innermost first */
};

/* Finds what is needed of libc. Once, as a constructor: never from within malloc, whose caller may hold the dynamic linker's lock. */
void trace_open(void);

/* Whether that has happened. */
bool trace_is_open(void);

/* Notes the calling thread and its callers, by the tables for exceptions (unwind_step.h). Calls nothing of the program's, and takes no lock if libc
 * has _dl_find_object; else that of dl_iterate_phdr, and so not inside (gate.h). `asks`: the kernel may be asked what can be read; else the
 * walk ends at code that lies in no object, since a stack without an end is not known for one. */
void trace_take(struct trace *trace, bool asks);

/* The same in the handler of a fault: the frames from the instruction at fault on, by the handler's ucontext_t. */
void trace_take_fault(struct trace *trace, const void *context);

/* All addresses on one line of standard error; then a line for each frame, with the function and the file that it lies in, as far as known. */
void trace_print(const struct trace *trace);

/* The same below a line: what the thread did, and which. */
void trace_say(const char *what, const struct trace *trace);

/* libc's function of that name, by libc_loaded.c and trace_linked.c; -1 where there is none. */
struct sigaction;
int trace_sigaction(int number, const struct sigaction *action, struct sigaction *before);

/* -- by where the files differ ------------------------------------------------------------------------------- */

/* The program as it was called, which may be a path; NULL if there is no such thing. Looked up only if it is needed: each name that the library is
 * linked with would cost every program that starts. */
const char *trace_find(void);

#endif
