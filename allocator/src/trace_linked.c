/* What traces need, in a program that is linked with the static library: what that program has. No unwinder: the frames of a static program are
 * registered with it, and so it takes a lock that a thread in malloc may hold (see trace_take). */
#include <signal.h>

#include "trace.h"

extern int dladdr(const void *address, struct trace_info *info) __attribute__((weak));
extern void *__libc_stack_end __attribute__((weak));

void trace_find(struct trace_libc *libc) {
    libc->dladdr = dladdr;
    libc->sigaction = sigaction;
    libc->stack_end = &__libc_stack_end != NULL ? (uintptr_t)__libc_stack_end : 0;
}
