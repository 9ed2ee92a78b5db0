/* Looked up once, when the library is loaded and the process has one thread: a lookup takes the dynamic linker's lock, which another thread
 * may hold while it waits for this one. */
#include <dlfcn.h>

#include "direct_binding.h"
#include "elf_objects.h"
#include "keeper.h"
#include "libc.h"
#include "os.h"
#include "trace.h"

#define NAME(name) [LIBC_##name] = #name,
static const char *const names[LIBC_FUNCTIONS] = {LIBC_RARE_SIGNALS(NAME) LIBC_IDENTITY(NAME) LIBC_TASKS(
    NAME) LIBC_SIGNALS(NAME) LIBC_CONFINEMENT(NAME) LIBC_LOADING(NAME) NAME(syscall)};

void *libc_functions[LIBC_syscall] SEALED;
void *libc_syscall_function SEALED;
os_clock_function *os_vdso_clock SEALED;
elf_find *elf_find_object SEALED;
void *direct_functions[DIRECT_KEPT] SEALED;

/* The linker's: the library's start. Its code lies before its dynamic section. */
extern const char __ehdr_start[] INTERNAL;
extern ElfW(Dyn) _DYNAMIC[] INTERNAL; /* glibc declares it too: NOLINT(readability-redundant-declaration) */

static bool is_own(const void *function) {
    return (uintptr_t)function >= (uintptr_t)__ehdr_start && (uintptr_t)function < (uintptr_t)_DYNAMIC;
}

/* A dlsym that another library has put before libc's looks from that library on, and may find our own function; or none. */
void *libc_look_up(enum libc_function which) {
    void *found = DIRECT(dlsym)(RTLD_NEXT, names[which]);
    if (found == NULL || is_own(found)) {
        found = elf_function_behind(__ehdr_start, names[which]);
    }
    return found;
}

static bool seal(bool sealed) {
    void *const places[] = {
        libc_functions,   &libc_functions[LIBC_syscall - 1], &libc_syscall_function, &os_vdso_clock, &elf_find_object,
        direct_functions, &direct_functions[DIRECT_KEPT - 1]};
    return os_seal(places, sizeof places / sizeof *places, sealed);
}

int trace_sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    typedef int set_action(int, const struct sigaction *, struct sigaction *);
    set_action *own = (set_action *)direct_function(DIRECT_sigaction);
    set_action *libc = own != NULL ? own : (set_action *)libc_function(LIBC_sigaction);
    return libc != NULL ? libc(number, action, before) : -1;
}

/* What is called before, by another library's constructor, or is not here, is looked up each time. */
__attribute__((constructor)) static void look_up_all(int arguments, char **argument) {
    if (seal(false)) {
        direct_bind();
        for (int which = LIBC_FIRST; which < LIBC_FUNCTIONS; which++) {
            void *found = libc_look_up((enum libc_function)which);
            __atomic_store_n(which == LIBC_syscall ? &libc_syscall_function : &libc_functions[which], found,
                             __ATOMIC_RELAXED);
        }
        os_find_clock(arguments, argument);
        if (modes() != 0) { /* or nobody has read them yet */
            *(void **)&elf_find_object = direct_function(DIRECT__dl_find_object);
        }
    }
    (void)seal(true);
    keeper_hear_identity(); /* api_identity.c */
}
