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

/* libc's function behind ours; `type` is a pointer to one. */
#define BEHIND(name, type) ((type)libc_function(LIBC_##name))

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

#endif
