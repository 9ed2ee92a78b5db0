/* The calls that change a process's users and groups. libc makes the system call in each thread
 * that it knows. It does not know the keeper, which therefore ends before the call. Only in the
 * shared library. A program that makes the system call itself changes one thread alone. */
#include <pthread.h>

#include "api_process.h"
#include "keeping.h"

/* Programs that change their user for each request put looks off for ever otherwise. */
static void catch_up(void) {
    if (gate.page != NULL && !thread_is_inside()) {
        keeping_catch_up();
    }
}

#define CHANGED(call) (catch_up(), WITHOUT_KEEPER(call))

PUBLIC FORWARDED(setuid, is_int(a), CHANGED)
PUBLIC FORWARDED(setgid, is_int(a), CHANGED)
PUBLIC FORWARDED(seteuid, is_int(a), CHANGED)
PUBLIC FORWARDED(setegid, is_int(a), CHANGED)
PUBLIC FORWARDED(setreuid, is_int(a) && is_int(b), CHANGED)
PUBLIC FORWARDED(setregid, is_int(a) && is_int(b), CHANGED)
PUBLIC FORWARDED(setresuid, is_int(a) && is_int(b) && is_int(c), CHANGED)
PUBLIC FORWARDED(setresgid, is_int(a) && is_int(b) && is_int(c), CHANGED)
PUBLIC FORWARDED(setgroups, is_int(a), CHANGED) /* a count */

PUBLIC OFFERED(initgroups) {
    PASS_OTHER(initgroups, is_int(b));
    any_function *libc = BEHIND(initgroups);
    if (libc == NULL) {
        return process_missing();
    }
    /* It reads files, where the thread may be cancelled: the keeper would stay away for good. */
    int state;
    bool held = pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state) == 0;
    long result = CHANGED(libc(a, b, c, d, e, f));
    if (held) {
        (void)pthread_setcancelstate(state, NULL);
    }
    return result;
}
