/* What traces need of libc, in a program that is linked with the static library: what that program has. */
#include <errno.h>
#include <signal.h>

#include "trace.h"

extern int _dl_find_object(void *address, void *found) __attribute__((weak));

void trace_find(struct trace_libc *libc) {
    libc->find_object = _dl_find_object;
    libc->sigaction = sigaction;
    libc->program = program_invocation_name;
}
