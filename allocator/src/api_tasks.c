/* What makes threads and processes: the keeper, of which the program knows nothing, is not in the way. It takes a place where threads are few
 * (RLIMIT_NPROC, a container's pids.max), and in a fork that runs no handlers it is a second thread that may be in the middle of something.
 * Only in the shared library. */
#include <linux/sched.h>

#include "api_process.h"

PUBLIC OFFERED(pthread_create) {
    any_function *libc = BEHIND(pthread_create);
    if (unlikely(libc == NULL)) {
        return ENOSYS;
    }
    keeper_note_sharing();
    long error = libc(a, b, c, d, e, f);
    if (unlikely((int)error == EAGAIN) && keeper_give_way(thread_is_inside())) {
        error = libc(a, b, c, d, e, f);
        keeper_stay_away();
    }
    return error;
}

PUBLIC OFFERED(_Fork) {
    any_function *libc = BEHIND(_Fork);
    return libc == NULL ? process_missing() : COPYING_PROCESS(libc(a, b, c, d, e, f));
}

/* The last lies on the stack on some machines; libc's takes it and the two before only where the flags ask for them. The new task goes on in a
 * function of its own, on its own stack, so whatever this function does afterwards only the caller sees. */
typedef long libc_clone(long a, long b, long c, long d, long e, long f, long child_number);

PUBLIC libc_clone offered_clone __asm__("clone");
long offered_clone(long a, long b, long c, long d, long e, long f, long child_number) {
    PASS_OTHER(clone, is_int(c));
    libc_clone *libc = (libc_clone *)libc_function(LIBC_clone);
    unsigned flags = (unsigned)c;
    if (unlikely(libc == NULL)) {
        return process_missing();
    }
    if ((flags & CLONE_FILES) != 0) {
        keeper_note_sharing();
    }
    if ((flags & CLONE_VM) != 0) { /* what is shared is not copied */
        return libc(a, b, c, d, e, f, child_number);
    }
    return COPYING_PROCESS(libc(a, b, c, d, e, f, child_number));
}
