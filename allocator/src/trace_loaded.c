/* What traces need, in the shared library: of the process, or else of the compiler's own library, loaded for it. */
#include <dlfcn.h>
#include <signal.h>

#include "trace.h"

void trace_find(struct trace_libc *libc) {
    void *from = RTLD_DEFAULT;
    void *(*load)(const char *, int);
    *(void **)&load = dlsym(RTLD_DEFAULT, "dlopen");
    if (dlsym(from, "_Unwind_Backtrace") == NULL && load != NULL) {
        from = load("libgcc_s.so.1", RTLD_NOW);
    }
    if (from != NULL || dlsym(RTLD_DEFAULT, "_Unwind_Backtrace") != NULL) {
        *(void **)&libc->backtrace = dlsym(from, "_Unwind_Backtrace");
        *(void **)&libc->address = dlsym(from, "_Unwind_GetIP");
        *(void **)&libc->entry = dlsym(from, "_Unwind_Find_FDE");
        *(void **)&libc->sp = dlsym(from, "_Unwind_GetCFA");
        *(void **)&libc->word = dlsym(from, "_Unwind_GetGR");
        *(void **)&libc->address_as = dlsym(from, "_Unwind_GetIPInfo");
    }
    *(void **)&libc->find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
    *(void **)&libc->dladdr = dlsym(RTLD_DEFAULT, "dladdr");
    *(void **)&libc->sigaction = dlsym(RTLD_NEXT, "sigaction"); /* the first is api_signals.c's */
    void *const *stack_end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
    libc->stack_end = stack_end != NULL ? (uintptr_t)*stack_end : 0;
}
