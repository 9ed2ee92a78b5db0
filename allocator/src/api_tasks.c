/* What makes threads and processes: the keeper, of which the program knows nothing, is not in the way. It takes a place where threads are few
 * (RLIMIT_NPROC, a container's pids.max), and in a fork that runs no handlers it is a second thread that may be in the middle of something.
 * Only in the shared library. */
#include <linux/sched.h>
#include <pthread.h>
#include <unistd.h>

#include "api_process.h"

typedef int libc_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    libc_create *libc = BEHIND(pthread_create, libc_create *);
    if (unlikely(libc == NULL)) {
        return ENOSYS;
    }
    keeper_note_sharing();
    int error = libc(thread, attributes, run, argument);
    if (unlikely(error == EAGAIN) && keeper_give_way(thread_is_inside())) {
        error = libc(thread, attributes, run, argument);
        keeper_stay_away();
    }
    return error;
}

PUBLIC pid_t _Fork(void) {
    pid_t (*libc)(void) = BEHIND(_Fork, pid_t (*)(void));
    return libc == NULL ? process_missing() : (pid_t)COPYING_PROCESS(libc());
}

/* By a type of its own: libc's is variadic, and takes the last three only where the flags ask for them. The new task goes on in `run`, on its
 * own stack, so whatever this function does afterwards only the caller sees. */
typedef int libc_clone(int (*run)(void *), void *stack, int flags, void *argument, void *parent_number,
                       void *thread_area, void *child_number);

PUBLIC libc_clone offered_clone __asm__("clone");
int offered_clone(int (*run)(void *), void *stack, int flags, void *argument, void *parent_number, void *thread_area,
                  void *child_number) {
    libc_clone *libc = BEHIND(clone, libc_clone *);
    if (unlikely(libc == NULL)) {
        return process_missing();
    }
    if ((flags & CLONE_FILES) != 0) {
        keeper_note_sharing();
    }
    if ((flags & CLONE_VM) != 0) { /* what is shared is not copied */
        return libc(run, stack, flags, argument, parent_number, thread_area, child_number);
    }
    return (int)COPYING_PROCESS(libc(run, stack, flags, argument, parent_number, thread_area, child_number));
}
