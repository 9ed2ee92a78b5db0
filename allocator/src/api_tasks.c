/* What makes threads and processes: the keeper, of which the program knows nothing, is not in the way. It takes a place where threads are few
 * (RLIMIT_NPROC, a container's pids.max), and in a fork that runs no handlers it is a second thread that may be in the middle of something.
 * Only in the shared library. */
#include <pthread.h>
#include <unistd.h>

#include "api_process.h"

typedef int libc_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    libc_create *libc = BEHIND(pthread_create, libc_create *);
    if (unlikely(libc == NULL)) {
        return ENOSYS;
    }
    int error = libc(thread, attributes, run, argument);
    if (unlikely(error == EAGAIN) && keeper_give_way()) {
        error = libc(thread, attributes, run, argument);
        keeper_stay_away();
    }
    return error;
}

PUBLIC pid_t _Fork(void) {
    pid_t (*libc)(void) = BEHIND(_Fork, pid_t (*)(void));
    return libc == NULL ? process_missing() : (pid_t)WITHOUT_KEEPER(libc());
}
