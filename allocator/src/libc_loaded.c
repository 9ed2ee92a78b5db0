/* Looked up once, when the library is loaded and the process has one thread: a lookup takes the dynamic linker's lock, which another thread
 * may hold while it waits for this one. */
#include <dlfcn.h>

#include "elf_objects.h"
#include "keeper.h"
#include "libc.h"
#include "os.h"

#define NAME(name) [LIBC_##name] = #name,
static const char *const names[LIBC_FUNCTIONS] = {LIBC_RARE_SIGNALS(NAME) LIBC_IDENTITY(NAME) LIBC_TASKS(
    NAME) LIBC_SIGNALS(NAME) LIBC_CONFINEMENT(NAME) LIBC_LOADING(NAME) NAME(syscall)};

/* Filled below, and read-only otherwise: who can write anywhere is not to choose what they call. On x86-64, where the linker knows the size of a
 * page, they lie with what the dynamic linker makes read-only before any constructor runs. */
#if defined(__x86_64__)
#define SEALED __attribute__((section(".data.rel.ro.sealed")))
#else
#define SEALED
#endif
void *libc_functions[LIBC_syscall] SEALED;
void *libc_syscall_function SEALED;

/* The linker's: the library's start. Its code lies before its dynamic section. */
extern const char __ehdr_start[] INTERNAL;
extern ElfW(Dyn) _DYNAMIC[] INTERNAL; /* glibc declares it too: NOLINT(readability-redundant-declaration) */

static bool is_own(const void *function) {
    return (uintptr_t)function >= (uintptr_t)__ehdr_start && (uintptr_t)function < (uintptr_t)_DYNAMIC;
}

/* A dlsym that another library has put before libc's looks from that library on, and may find our own function; or none. */
void *libc_look_up(enum libc_function which) {
    void *found = dlsym(RTLD_NEXT, names[which]);
    if (found == NULL || is_own(found)) {
        found = elf_function_behind(__ehdr_start, names[which]);
    }
    return found;
}

/* Both lie side by side. */
static bool seal(bool sealed) {
#if defined(__x86_64__)
    uintptr_t table = (uintptr_t)libc_functions, one = (uintptr_t)&libc_syscall_function;
    uintptr_t start = bits_min(table, one), end = bits_max(table + sizeof libc_functions, one + sizeof(void *));
    return os_write_protect((void *)start, end - start, sealed);
#else
    (void)sealed;
    return true;
#endif
}

/* What is called before, by another library's constructor, or is not here, is looked up each time. */
__attribute__((constructor)) static void look_up_all(void) {
    if (seal(false)) {
        for (int which = LIBC_FIRST; which < LIBC_FUNCTIONS; which++) {
            void *found = libc_look_up((enum libc_function)which);
            __atomic_store_n(which == LIBC_syscall ? &libc_syscall_function : &libc_functions[which], found,
                             __ATOMIC_RELAXED);
        }
    }
    (void)seal(true);
    keeper_hear_identity(); /* api_identity.c */
}
