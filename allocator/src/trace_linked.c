/* What traces need, in a program that is linked with the static library: what that program has. */
#include <signal.h>

#include "trace.h"

extern int _Unwind_Backtrace(trace_visit *visit, void *walk) __attribute__((weak));
extern uintptr_t _Unwind_GetIP(void *context) __attribute__((weak));
extern void *__libc_stack_end __attribute__((weak));

void trace_find(struct trace_libc *libc) {
    libc->backtrace = _Unwind_Backtrace;
    libc->address = _Unwind_GetIP;
    libc->sigaction = sigaction;
    libc->stack_end = &__libc_stack_end != NULL ? (uintptr_t)__libc_stack_end : 0;
}
