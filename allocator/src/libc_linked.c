/* System calls, made here: the functions of libc that a program is linked with are those in front. */
#include <errno.h>
#include <sys/syscall.h>

#include "libc.h"
#include "os.h"

static long answer(long result) {
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static int linked_capset(long header, long data) { return (int)answer(os_call(SYS_capset, header, data, 0, 0, 0, 0)); }

static int linked_prctl(long option, long a, long b, long c, long d) {
    return (int)answer(os_call(SYS_prctl, option, a, b, c, d, 0));
}

static long linked_syscall(long number, long a, long b, long c, long d, long e, long f) {
    return answer(os_call(number, a, b, c, d, e, f));
}

static int linked_unshare(long flags) { return (int)answer(os_call(SYS_unshare, flags, 0, 0, 0, 0, 0)); }

static int linked_setns(long file, long type) { return (int)answer(os_call(SYS_setns, file, type, 0, 0, 0, 0)); }

static int linked_close_range(long first, long last, long flags) {
    return (int)answer(os_call(SYS_close_range, first, last, flags, 0, 0, 0));
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
