/* The keeper is a thread that the program knows nothing of, and takes a place where they are few (RLIMIT_NPROC, a container's pids.max): where
 * the program is refused one, it is the keeper that goes. Only in the shared library. */
#include <pthread.h>

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
