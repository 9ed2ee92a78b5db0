/* Looked up once, when the library is loaded, and without the dynamic linker if that can be: dlsym takes its lock, which another thread may hold while
 * it waits for this one, and which is not free in a signal handler that has interrupted dlopen. */
#include <dlfcn.h>

#include "cxx_operators.h"
#include "direct_binding.h"
#include "elf_objects.h"
#include "keeper.h"
#include "libc.h"
#include "os.h"
#include "trace.h"

#define NAME(name) [LIBC_##name] = #name,
static const char *const names[LIBC_FUNCTIONS] = {LIBC_IDENTITY(NAME) LIBC_TASKS(NAME) LIBC_SIGNALS(NAME) LIBC_FREEING(
    NAME) LIBC_CONFINEMENT(NAME) LIBC_LOADING(NAME) NAME(syscall)};

void *libc_functions[LIBC_syscall] SEALED;
void *libc_syscall_function SEALED;
uint32_t libc_others SEALED;
os_clock_function *os_vdso_clock SEALED;
elf_find *elf_find_object SEALED;
void *direct_functions[DIRECT_KEPT] SEALED;

/* The linker's: the library's start. Its code lies before its dynamic section. */
extern const char __ehdr_start[] INTERNAL;
extern ElfW(Dyn) _DYNAMIC[] INTERNAL; /* glibc declares it too: NOLINT(readability-redundant-declaration) */

static bool is_own(const void *function) {
    return (uintptr_t)function >= (uintptr_t)__ehdr_start && (uintptr_t)function < (uintptr_t)_DYNAMIC;
}

/* For a library that was loaded late, and a name that nothing behind this one has. A dlsym that another library has put before libc's looks from
 * that library on, and may find our own function; or none. */
static void *ask_linker(const char *name) {
    void *found = DIRECT(dlsym)(RTLD_NEXT, name);
    if (found == NULL || is_own(found)) {
        found = elf_function_behind(__ehdr_start, name);
    }
    return found;
}

static bool looked_up SEALED; /* all of them: what is missing then is in no library that is loaded */

/* Before glibc 2.34 these two are in libraries of their own, which may come later, with whom calls them. */
static bool may_come(enum libc_function which) { return which == LIBC_pthread_create || which == LIBC_dlopen; }

static OUT_OF_LINE void *find(enum libc_function which) {
    struct elf_search search;
    void *found = NULL;
    elf_search_begin(&search, &names[which], &found, 1);
    elf_search_behind(&search);
    return found != NULL ? found : ask_linker(names[which]);
}

void *libc_look_up(enum libc_function which) {
    if (looked_up) {
        return may_come(which) ? ask_linker(names[which]) : NULL;
    }
    return find(which);
}

static bool seal(bool sealed) {
    void *const places[] = {libc_functions,
                            &libc_functions[LIBC_syscall - 1],
                            &libc_syscall_function,
                            &libc_others,
                            &os_vdso_clock,
                            &elf_find_object,
                            direct_functions,
                            &direct_functions[DIRECT_KEPT - 1],
                            &looked_up};
    return os_seal(places, sizeof places / sizeof *places, sealed);
}

int trace_sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    typedef int set_action(int, const struct sigaction *, struct sigaction *);
    set_action *own = (set_action *)direct_function(DIRECT_sigaction);
    set_action *libc = own != NULL ? own : (set_action *)libc_function(LIBC_sigaction);
    return libc != NULL ? libc(number, action, before) : -1;
}

static void look_up_all(void) {
    struct elf_search search;
    void *found[LIBC_FUNCTIONS] = {NULL};
    elf_search_begin(&search, names, found, LIBC_FUNCTIONS);
    elf_search_behind(&search);
    for (enum libc_function which = 0; which < LIBC_FUNCTIONS; which++) {
        void **place = which == LIBC_syscall ? &libc_syscall_function : &libc_functions[which];
        if (found[which] == NULL &&
            which != LIBC_cfree) { /* libc's is not called, and dlsym would allocate, to say that there is none */
            found[which] = ask_linker(names[which]);
        }
        __atomic_store_n(place, found[which], __ATOMIC_RELAXED);
    }
    __atomic_store_n(&libc_others, search.others, __ATOMIC_RELAXED);
    looked_up = true;
}

/* What is called before, by another library's constructor, is looked up each time. */
__attribute__((constructor)) static void find_all(int arguments, char **argument) {
    if (seal(false)) {
        direct_bind();
        look_up_all();
        os_find_clock(arguments, argument);
        *(void **)&elf_find_object = direct_function(DIRECT__dl_find_object);
    }
    (void)seal(true);
    cxx_may_keep();
    keeper_hear_identity(); /* api_identity.c */
}
