/* What traces need of libc, in the shared library. */
#include <dlfcn.h>

#include "direct_binding.h"
#include "trace.h"

const char *trace_find(void) {
    char *const *program = DIRECT(dlsym)(RTLD_DEFAULT, "program_invocation_name");
    return program != NULL ? *program : NULL;
}
