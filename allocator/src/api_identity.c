/* Who the process is: libc tells every thread that it knows when that changes, and the keeper is none of those. Only in the shared library. A
 * program that makes the system calls by itself changes one thread alone, as the kernel has it. */
#include <grp.h>
#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include "api_process.h"
#include "keeping.h"

/* Programs that change their user for each request put looks off for ever otherwise. */
static void catch_up(void) {
    if (gate.page != NULL && !thread_is_inside()) {
        keeping_catch_up();
    }
}

#define CHANGED(call) (catch_up(), WITHOUT_KEEPER(call))

PUBLIC int setuid(uid_t user) {
    int (*libc)(uid_t) = BEHIND(setuid, int (*)(uid_t));
    return libc == NULL ? process_missing() : (int)CHANGED(libc(user));
}

PUBLIC int setgid(gid_t group) {
    int (*libc)(gid_t) = BEHIND(setgid, int (*)(gid_t));
    return libc == NULL ? process_missing() : (int)CHANGED(libc(group));
}

PUBLIC int seteuid(uid_t user) {
    int (*libc)(uid_t) = BEHIND(seteuid, int (*)(uid_t));
    return libc == NULL ? process_missing() : (int)CHANGED(libc(user));
}

PUBLIC int setegid(gid_t group) {
    int (*libc)(gid_t) = BEHIND(setegid, int (*)(gid_t));
    return libc == NULL ? process_missing() : (int)CHANGED(libc(group));
}

PUBLIC int setreuid(uid_t real, uid_t effective) {
    int (*libc)(uid_t, uid_t) = BEHIND(setreuid, int (*)(uid_t, uid_t));
    return libc == NULL ? process_missing() : (int)CHANGED(libc(real, effective));
}

PUBLIC int setregid(gid_t real, gid_t effective) {
    int (*libc)(gid_t, gid_t) = BEHIND(setregid, int (*)(gid_t, gid_t));
    return libc == NULL ? process_missing() : (int)CHANGED(libc(real, effective));
}

PUBLIC int setresuid(uid_t real, uid_t effective, uid_t saved) {
    int (*libc)(uid_t, uid_t, uid_t) = BEHIND(setresuid, int (*)(uid_t, uid_t, uid_t));
    return libc == NULL ? process_missing() : (int)CHANGED(libc(real, effective, saved));
}

PUBLIC int setresgid(gid_t real, gid_t effective, gid_t saved) {
    int (*libc)(gid_t, gid_t, gid_t) = BEHIND(setresgid, int (*)(gid_t, gid_t, gid_t));
    return libc == NULL ? process_missing() : (int)CHANGED(libc(real, effective, saved));
}

PUBLIC int setgroups(size_t count, const gid_t *groups) {
    int (*libc)(size_t, const gid_t *) = BEHIND(setgroups, int (*)(size_t, const gid_t *));
    return libc == NULL ? process_missing() : (int)CHANGED(libc(count, groups));
}

PUBLIC int initgroups(const char *user, gid_t group) {
    int (*libc)(const char *, gid_t) = BEHIND(initgroups, int (*)(const char *, gid_t));
    if (libc == NULL) {
        return process_missing();
    }
    /* It reads files, where the thread may be cancelled: the keeper would stay away for good. */
    int state;
    bool held = pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state) == 0;
    int result = (int)CHANGED(libc(user, group));
    if (held) {
        (void)pthread_setcancelstate(state, NULL);
    }
    return result;
}
