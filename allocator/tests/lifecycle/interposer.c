/* A preload in front of the allocator, as tracers and profilers are: its malloc finds the next one by dlsym, which may
 * itself allocate, on the first call of all. Counts what passes through. */
#include <dlfcn.h>

#include "entry.h"

size_t interposer_calls(void);

static size_t calls;

size_t interposer_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

static void *next(const char *name) {
    /* Ask for something that is not there first: dlerror's message is allocated with the very calloc being sought. */
    (void)dlsym(RTLD_NEXT, "no_function_has_this_name");
    return dlsym(RTLD_NEXT, name);
}

void *malloc(size_t size) {
    /* volatile: dlsym is declared never to call back into this file, which is just what it does here. */
    static __thread volatile int searching;
    static void *(*real)(size_t);
    if (real == NULL) {
        if (searching != 0) {
            return NULL; /* asked by dlsym itself, which copes */
        }
        searching = 1;
        real = (void *(*)(size_t))(uintptr_t)next("malloc");
        searching = 0;
    }
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    return real(size);
}
