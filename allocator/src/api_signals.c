/* Handlers of the program's own for faults. Where blocks are guarded or hardened, the library's handler stands before them, whenever they are set: it
 * says of a fault in a page that the library keeps closed what it was. The program is told what it has set itself. Only in the shared library.
 * Whoever makes the system call by himself is not seen.
 *
 * All are async-signal-safe where libc's are, and by default pass the call on. */
#include <signal.h>

#include "api_process.h"
#include "fault_handler.h"

typedef void handler(int number);

PUBLIC OFFERED(sigaction) {
    PASS_OTHER(sigaction, is_int(a));
    any_function *libc = BEHIND(sigaction);
    int number = (int)a;
    if (unlikely(libc == NULL)) {
        return process_missing();
    }
    if (likely(!fault_handler_stands(number))) {
        return libc(a, b, c, d, e, f);
    }
    struct sigaction programs, found, *before = (struct sigaction *)c;
    fault_handler_behind(number, &programs);
    long result = libc(a, b, (long)&found, d, e, f);
    if ((int)result == 0 && b != 0) { /* first: `before` may be the same */
        fault_handler_return(number);
    }
    if ((int)result == 0 && before != NULL) {
        programs.sa_flags =
            (programs.sa_flags & ~SA_RESTART) | (found.sa_flags & SA_RESTART); /* changed by siginterrupt */
        *before = fault_handler_is_own(&found) ? programs : found;
    }
    return result;
}

/* libc's function has set something, unless it has failed, and returns what was there before. */
static long told_of(int number, const struct sigaction *programs, long before) {
    struct sigaction own = {.sa_handler = (handler *)before, .sa_flags = SA_SIGINFO};
    bool is_set = own.sa_handler != SIG_ERR;
    if (is_set) {
        fault_handler_return(number);
    }
    return is_set && fault_handler_is_own(&own) ? (long)programs->sa_handler : before;
}

#define SETS(name)                                                 \
    PUBLIC OFFERED(name) {                                         \
        PASS_OTHER(name, is_int(a));                               \
        any_function *libc = BEHIND(name);                         \
        if (unlikely(libc == NULL)) {                              \
            return process_missing(); /* as SIG_ERR is */          \
        }                                                          \
        if (likely(!fault_handler_stands((int)a))) {               \
            return libc(a, b, c, d, e, f);                         \
        }                                                          \
        struct sigaction programs;                                 \
        fault_handler_behind((int)a, &programs);                   \
        return told_of((int)a, &programs, libc(a, b, c, d, e, f)); \
    }

SETS(signal)
SETS(bsd_signal)
SETS(ssignal)
SETS(sysv_signal)
SETS(__sysv_signal)
SETS(sigset)

PUBLIC OFFERED(sigignore) {
    PASS_OTHER(sigignore, is_int(a));
    any_function *libc = BEHIND(sigignore);
    long result = libc == NULL ? process_missing() : libc(a, b, c, d, e, f);
    if ((int)result == 0 && fault_handler_stands((int)a)) {
        fault_handler_return((int)a);
    }
    return result;
}
