/* Looked up once, when the library is loaded and the process has one thread: a lookup takes the dynamic linker's lock, which another thread
 * may hold while it waits for this one. */
#include <dlfcn.h>

#include "elf_objects.h"
#include "keeper.h"
#include "libc.h"

#define NAME(name) [LIBC_##name] = #name,
static const char *const names[LIBC_FUNCTIONS] = {LIBC_RARE_SIGNALS(NAME) LIBC_IDENTITY(NAME) LIBC_TASKS(
    NAME) LIBC_SIGNALS(NAME) LIBC_CONFINEMENT(NAME) LIBC_LOADING(NAME) NAME(syscall)};

void *libc_functions[LIBC_syscall]; /* filled below; another library's constructor may come before */
void *libc_syscall_function;

/* The linker's: the library's start. Its code lies before its dynamic section. */
extern const char __ehdr_start[] INTERNAL;
extern ElfW(Dyn) _DYNAMIC[] INTERNAL;

static bool is_own(const void *function) {
    return (uintptr_t)function >= (uintptr_t)__ehdr_start && (uintptr_t)function < (uintptr_t)_DYNAMIC;
}

/* A dlsym that another library has put before libc's looks from that library on, and may find our own function; or none. */
void *libc_look_up(enum libc_function which) {
    void *found = dlsym(RTLD_NEXT, names[which]);
    if (found == NULL || is_own(found)) {
        found = elf_function_behind(__ehdr_start, names[which]);
    }
    __atomic_store_n(which == LIBC_syscall ? &libc_syscall_function : &libc_functions[which], found, __ATOMIC_RELAXED);
    return found;
}

__attribute__((constructor)) static void look_up_all(void) {
    for (int which = LIBC_FIRST; which < LIBC_FUNCTIONS; which++) {
        (void)libc_look_up((enum libc_function)which);
    }
    keeper_hear_identity(); /* api_identity.c */
}
