/* libc's functions behind ours of the same name. Two files implement it: libc_loaded.c for the shared library, whose functions stand before
 * those of libc or of another library; libc_linked.c for the static one, whose functions stand instead of libc's. */
#ifndef FREESTONE_LIBC_H
#define FREESTONE_LIBC_H

#include <sys/syscall.h>

#include "bits.h"

#ifndef SYS_close_range /* since Linux 5.9, and glibc 2.33 */
#define SYS_close_range 436
#endif

/* Who the process is: only in the shared library, since no system call does for all threads what libc does. */
#define LIBC_IDENTITY(name)                                                                             \
    name(setuid) name(setgid) name(seteuid) name(setegid) name(setreuid) name(setregid) name(setresuid) \
        name(setresgid) name(setgroups) name(initgroups)

/* What makes threads and processes: only in the shared library, too. */
#define LIBC_TASKS(name) name(pthread_create) name(_Fork) name(clone)

/* How signals are handled: only in the shared library. */
#define LIBC_SIGNALS(name)                                                                                         \
    name(sigaction) name(signal) name(bsd_signal) name(ssignal) name(sysv_signal) name(__sysv_signal) name(sigset) \
        name(sigignore)

/* What its threads may do: each is a system call and no more. */
#define LIBC_CONFINEMENT(name) name(capset) name(prctl) name(unshare) name(setns) name(close_range)

/* What loads other objects: only in the shared library. */
#define LIBC_LOADING(name) name(dlopen)

/* How old programs free: only in the shared library. */
#define LIBC_FREEING(name) name(cfree)

#define LIBC_MEMBER(name) LIBC_##name,
enum libc_function {
    LIBC_IDENTITY(LIBC_MEMBER) LIBC_TASKS(LIBC_MEMBER) LIBC_SIGNALS(LIBC_MEMBER) LIBC_FREEING(LIBC_MEMBER)
        LIBC_CONFINEMENT(LIBC_MEMBER) LIBC_LOADING(LIBC_MEMBER) LIBC_syscall,
    LIBC_FUNCTIONS
};

/* Relaxed: every thread would store the same value. The last has a name of its own, for assembly. */
extern void *libc_functions[LIBC_syscall] INTERNAL;
extern void *libc_syscall_function INTERNAL;

/* As wide as registers are: what stands behind may be a function of the program's own. */
typedef long any_function(long a, long b, long c, long d, long e, long f);

/* A bit for each that is not libc's own: an object of the program's or another preload defines it. 0 until that has been looked up, by a constructor.
 * Relaxed: who sees 0 takes it for libc's, with all that a register holds. */
extern uint32_t libc_others INTERNAL;

static INLINE_ALWAYS bool libc_is_other(enum libc_function which) {
    return (__atomic_load_n(&libc_others, __ATOMIC_RELAXED) >> which & 1) != 0;
}

/* Looks for it; NULL where libc has no such function. */
void *libc_look_up(enum libc_function which);

static inline void *libc_function(enum libc_function which) {
    void **place = which == LIBC_syscall ? &libc_syscall_function : &libc_functions[which];
    void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
    return likely(found != NULL) ? found : libc_look_up(which);
}

#endif
