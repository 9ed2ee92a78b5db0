/* Handlers of the program's own for faults. Where blocks are guarded or hardened, the library's handler stands before them, whenever they are set: it
 * says of a fault in a page that the library keeps closed what it was. The program is told what it has set itself. Only in the shared library.
 * Whoever makes the system call by himself is not seen.
 *
 * All are async-signal-safe where libc's are, and by default pass the call on. */
#include <signal.h>

#include "api_process.h"
#include "fault_handler.h"

typedef void handler(int number);

PUBLIC int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    int (*libc)(int, const struct sigaction *, struct sigaction *) =
        BEHIND(sigaction, int (*)(int, const struct sigaction *, struct sigaction *));
    if (unlikely(libc == NULL)) {
        return process_missing();
    }
    if (likely(!fault_handler_stands(number))) {
        return libc(number, action, before);
    }
    struct sigaction programs, found;
    fault_handler_behind(number, &programs);
    int result = libc(number, action, &found);
    if (result == 0 && action != NULL) { /* first: `before` may be the same */
        fault_handler_return(number);
    }
    if (result == 0 && before != NULL) {
        programs.sa_flags =
            (programs.sa_flags & ~SA_RESTART) | (found.sa_flags & SA_RESTART); /* changed by siginterrupt */
        *before = fault_handler_is_own(&found) ? programs : found;
    }
    return result;
}

/* libc's function has set something, unless it has failed, and returns what was there before. */
static handler *told_of(int number, const struct sigaction *programs, handler *before) {
    struct sigaction own = {.sa_handler = before, .sa_flags = SA_SIGINFO};
    if (before != SIG_ERR) {
        fault_handler_return(number);
    }
    return before != SIG_ERR && fault_handler_is_own(&own) ? programs->sa_handler : before;
}

#define SETTING(name, number, action)                                                   \
    __extension__({                                                                     \
        handler *(*libc)(int, handler *) = BEHIND(name, handler * (*)(int, handler *)); \
        handler *result = SIG_ERR;                                                      \
        if (unlikely(libc == NULL)) {                                                   \
            (void)process_missing();                                                    \
        } else if (likely(!fault_handler_stands(number))) {                             \
            result = libc(number, action);                                              \
        } else {                                                                        \
            struct sigaction programs;                                                  \
            fault_handler_behind(number, &programs);                                    \
            result = told_of(number, &programs, libc(number, action));                  \
        }                                                                               \
        result;                                                                         \
    })

PUBLIC handler *signal(int number, handler *action) { return SETTING(signal, number, action); }
PUBLIC handler *bsd_signal(int number, handler *action) { return SETTING(bsd_signal, number, action); }
PUBLIC handler *ssignal(int number, handler *action) { return SETTING(ssignal, number, action); }
PUBLIC handler *sysv_signal(int number, handler *action) { return SETTING(sysv_signal, number, action); }
PUBLIC handler *__sysv_signal(int number, handler *action) { return SETTING(__sysv_signal, number, action); }
PUBLIC handler *sigset(int number, handler *action) { return SETTING(sigset, number, action); }

PUBLIC int sigignore(int number) {
    int (*libc)(int) = BEHIND(sigignore, int (*)(int));
    int result = libc == NULL ? process_missing() : libc(number);
    if (result == 0 && fault_handler_stands(number)) {
        fault_handler_return(number);
    }
    return result;
}
