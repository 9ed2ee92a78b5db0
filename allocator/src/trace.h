/* Who called: return addresses, for reports. Leaf above os. Two files find what unwinds: trace_loaded.c, in the shared library, and
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

/* Finds what unwinds. Once, as a constructor: never from within malloc, whose caller may hold the dynamic linker's lock. */
void trace_open(void);

/* Whether that has happened. */
bool trace_is_open(void);

/* Notes the calling thread and its callers. Not inside (gate.h): to unwind may take the dynamic linker's lock. Never where frames are
 * registered: there it may take a lock of the unwinder, whose holder may be in malloc, or the parent's. Then frame pointers are followed. `asks`: the
 * kernel may be asked what can be read; else a stack without an end is not known for one, and of frame pointers none is followed. */
void trace_take(struct trace *trace, bool asks);

/* The same in the handler of a fault: the frames from the instruction at `at` on, where that is not 0; those before it are the handler's. */
void trace_take_from(struct trace *trace, uintptr_t at);

/* The program registers frames of its own making with the unwinder, or is about to. */
void trace_follow_pointers(void);

/* A line for each frame on standard error, with the function and the file it lies in where they can be told. */
void trace_print(const struct trace *trace);

/* The same below a line: what the thread did, and which. */
void trace_say(const char *what, const struct trace *trace);

/* libc's function of that name; -1 before trace_open, and where there is none. */
struct sigaction;
int trace_sigaction(int number, const struct sigaction *action, struct sigaction *before);

/* -- by where the files differ ------------------------------------------------------------------------------- */

/* What dladdr fills. */
struct trace_info {
    const char *file;
    void *base;
    const char *function;
    void *start;
};

/* What _Unwind_Find_FDE fills. */
struct trace_bases {
    void *text, *data, *function;
};

/* What is needed of libc and of what unwinds, and is looked up only where it is: each name that the library is linked with would cost every
 * program that starts. NULL, or 0, where there is no such thing. */
typedef int trace_visit(void *context, void *walk);
struct trace_libc {
    int (*backtrace)(trace_visit *visit, void *walk); /* _Unwind_Backtrace, _Unwind_GetIP */
    uintptr_t (*address)(void *context);
    /* _Unwind_Find_FDE, _Unwind_GetCFA, _Unwind_GetGR, _Unwind_GetIPInfo */
    const void *(*entry)(void *address, struct trace_bases *bases);
    uintptr_t (*sp)(void *context);
    uintptr_t (*word)(void *context, int number);
    uintptr_t (*address_as)(void *context, int *is_next);
    int (*dladdr)(const void *address, struct trace_info *info);
    int (*sigaction)(int number, const struct sigaction *action, struct sigaction *before);
    int (*find_object)(void *address, void *found); /* _dl_find_object, of glibc since 2.35: takes no lock */
    uintptr_t stack_end; /* of the first thread */
};
void trace_find(struct trace_libc *libc);

#endif
