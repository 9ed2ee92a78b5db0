/* System calls, made here: the functions of libc that a program is linked with are those in front. */
#include <errno.h>
#include <sys/syscall.h>

#include "elf_objects.h"
#include "libc.h"
#include "os.h"

static long answer(long result) {
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

enum { FIRST = LIBC_capset, COUNT = LIBC_FUNCTIONS - FIRST }; /* of those that this library has */

#define NAME(name) [LIBC_##name - FIRST] = #name,
static const char *const names[COUNT] = {LIBC_CONFINEMENT(NAME) LIBC_LOADING(NAME) NAME(syscall)};

uint32_t libc_others;

/* The bits of libc_others. Looked for anew each time: no address of code is kept in memory that can be written. */
static uint32_t find_others(void *found[COUNT]) {
    struct elf_search search;
    elf_search_begin(&search, names, found, COUNT);
    elf_search_behind(&search);
    return search.others << FIRST;
}

/* A library that the program is linked with may define one of them for itself. */
__attribute__((constructor)) static void note_others(void) {
    void *found[COUNT] = {NULL};
    __atomic_store_n(&libc_others, find_others(found), __ATOMIC_RELAXED);
}

static OUT_OF_LINE void *other(enum libc_function which) {
    void *found[COUNT] = {NULL};
    (void)find_others(found);
    return found[which - FIRST];
}

#define LINKED(name)                                                            \
    static long linked_##name(long a, long b, long c, long d, long e, long f) { \
        if (unlikely(libc_is_other(LIBC_##name))) {                             \
            return ((any_function *)other(LIBC_##name))(a, b, c, d, e, f);      \
        }                                                                       \
        return answer(os_call(SYS_##name, a, b, c, d, e, f));                   \
    }

LINKED(capset)
LINKED(prctl)
LINKED(unshare)
LINKED(setns)
LINKED(close_range)

static long linked_syscall(long number, long a, long b, long c, long d, long e, long f) {
    typedef long seven(long, long, long, long, long, long, long);
    if (unlikely(libc_is_other(LIBC_syscall))) {
        return ((seven *)other(LIBC_syscall))(number, a, b, c, d, e, f);
    }
    return answer(os_call(number, a, b, c, d, e, f));
}

/* Read-only once the program has started, as constants that hold addresses are. */
#undef SEALED
#define SEALED __attribute__((section(".data.rel.ro.sealed")))

void *libc_functions[LIBC_syscall] SEALED = {
    [LIBC_capset] = (void *)linked_capset,           [LIBC_prctl] = (void *)linked_prctl,
    [LIBC_unshare] = (void *)linked_unshare,         [LIBC_setns] = (void *)linked_setns,
    [LIBC_close_range] = (void *)linked_close_range,
};
void *libc_syscall_function SEALED = (void *)linked_syscall;

void *libc_look_up(enum libc_function which) {
    return which == LIBC_syscall ? libc_syscall_function : libc_functions[which];
}
