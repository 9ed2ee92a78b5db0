/* Calls before which the keeper ends: what they change, or ask the kernel for, is a matter of every thread of the process, and the program
 * does not know of this one. It is started anew, by a thread that has changed, when there is need. */
#ifndef FREESTONE_API_PROCESS_H
#define FREESTONE_API_PROCESS_H

#include <errno.h>

#include "gate.h"
#include "keeper.h"
#include "libc.h"
#include "thread_cache.h"

#define PUBLIC __attribute__((visibility("default")))

/* A function in front of libc's, and the one behind. All that a register holds is passed on, and comes back: the one behind may be the program's
 * own, with nothing but the name of libc's. Arguments that libc's does not have hold anything; so does the upper half of an int. */
#define OFFERED(name)                           \
    any_function offered_##name __asm__(#name); \
    long offered_##name(long a, long b, long c, long d, long e, long f)
#define BEHIND(name) ((any_function *)libc_function(LIBC_##name))

static INLINE_ALWAYS bool is_int(long value) { return value == (int)value || (unsigned long)value == (unsigned)value; }

/* It is there: what is libc's or not is said once all are looked up. syscall is not passed on like this. */
#define OTHER(name) ((any_function *)__atomic_load_n(&libc_functions[LIBC_##name], __ATOMIC_RELAXED))

/* First in such a function. One behind that is not libc's is the program's own, or wraps libc's: `meant` is whether the arguments can be those of
 * libc's. Unless they can, the call becomes a jump: floating-point registers and the stack are the caller's, too. */
#define PASS_OTHER(name, meant)                                 \
    do {                                                        \
        if (unlikely(libc_is_other(LIBC_##name)) && !(meant)) { \
            return OTHER(name)(a, b, c, d, e, f);               \
        }                                                       \
    } while (0)

static inline long process_changed(bool left, long result) {
    int error = errno;
    if (left) {
        keeper_return(true);
    }
    errno = error;
    return result;
}

#define WITHOUT_KEEPER(call)                                \
    __extension__({                                         \
        bool left = keeper_leave_first(thread_is_inside()); \
        process_changed(left, (long)(call));                \
    })

/* A call that makes a process goes on if the keeper does not get to run: the child can do without what it holds. */
#define COPYING_PROCESS(call)                         \
    __extension__({                                   \
        bool left = keeper_leave(thread_is_inside()); \
        process_changed(left, (long)(call));          \
    })

static inline int process_missing(void) {
    errno = ENOSYS;
    return -1;
}

/* Such a function as a whole, if nothing but `around` (one of the macros above, or made of one) is done about the call. */
#define FORWARDED(name, meant, around)                                            \
    OFFERED(name) {                                                               \
        PASS_OTHER(name, meant);                                                  \
        any_function *libc = BEHIND(name);                                        \
        return libc == NULL ? process_missing() : around(libc(a, b, c, d, e, f)); \
    }

#endif
