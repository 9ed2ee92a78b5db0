/* What traces need of libc, in the shared library. */
#include <dlfcn.h>
#include <signal.h>

#include "trace.h"

void trace_find(struct trace_libc *libc) {
    *(void **)&libc->find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
    *(void **)&libc->sigaction = dlsym(RTLD_NEXT, "sigaction"); /* the first is api_signals.c's */
    char *const *program = dlsym(RTLD_DEFAULT, "program_invocation_name");
    libc->program = program != NULL ? *program : NULL;
}
