/* Who the process is: libc tells every thread that it knows when that changes, and the keeper is none of those. So it ends before, and
 * is started anew, by a thread that has changed, when there is need. Only in the shared library: these stand before libc's own, which
 * they call. A program that makes the system calls by itself changes one thread alone, as the kernel has it. */
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/types.h>
#include <unistd.h>

#include "keeper.h"

#define PUBLIC __attribute__((visibility("default")))

/* libc's function of that name; NULL where it has none. */
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static int finish(bool left, int result) {
    int error = errno;
    if (left) {
        keeper_return(true);
    }
    errno = error;
    return result;
}

#define WITHOUT_KEEPER(call)        \
    __extension__({                 \
        bool left = keeper_leave(); \
        finish(left, call);         \
    })

static int missing(void) {
    errno = ENOSYS;
    return -1;
}

PUBLIC int setuid(uid_t user) {
    int (*libc)(uid_t) = (int (*)(uid_t))next("setuid");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(user));
}

PUBLIC int setgid(gid_t group) {
    int (*libc)(gid_t) = (int (*)(gid_t))next("setgid");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(group));
}

PUBLIC int seteuid(uid_t user) {
    int (*libc)(uid_t) = (int (*)(uid_t))next("seteuid");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(user));
}

PUBLIC int setegid(gid_t group) {
    int (*libc)(gid_t) = (int (*)(gid_t))next("setegid");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(group));
}

PUBLIC int setreuid(uid_t real, uid_t effective) {
    int (*libc)(uid_t, uid_t) = (int (*)(uid_t, uid_t))next("setreuid");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(real, effective));
}

PUBLIC int setregid(gid_t real, gid_t effective) {
    int (*libc)(gid_t, gid_t) = (int (*)(gid_t, gid_t))next("setregid");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(real, effective));
}

PUBLIC int setresuid(uid_t real, uid_t effective, uid_t saved) {
    int (*libc)(uid_t, uid_t, uid_t) = (int (*)(uid_t, uid_t, uid_t))next("setresuid");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(real, effective, saved));
}

PUBLIC int setresgid(gid_t real, gid_t effective, gid_t saved) {
    int (*libc)(gid_t, gid_t, gid_t) = (int (*)(gid_t, gid_t, gid_t))next("setresgid");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(real, effective, saved));
}

PUBLIC int setgroups(size_t count, const gid_t *groups) {
    int (*libc)(size_t, const gid_t *) = (int (*)(size_t, const gid_t *))next("setgroups");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(count, groups));
}

PUBLIC int initgroups(const char *user, gid_t group) {
    int (*libc)(const char *, gid_t) = (int (*)(const char *, gid_t))next("initgroups");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(user, group));
}

/* Of the calling thread alone; but a program that gives up what it may do does not mean to leave it to ours. */
int capset(cap_user_header_t header, cap_user_data_t data); /* no header of libc says so */
PUBLIC int capset(cap_user_header_t header, cap_user_data_t data) {
    int (*libc)(cap_user_header_t, cap_user_data_t) = (int (*)(cap_user_header_t, cap_user_data_t))next("capset");
    return libc == NULL ? missing() : WITHOUT_KEEPER(libc(header, data));
}
