#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY = 65534 };

/* Who ends a tree waits about a second before it kills: by then nothing may be left. */
static const double patience_s = 0.4, orphans_s = 0.5;

static sigset_t awaited, as_before;
static int told_to_end; /* the signal */

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

void children_keep(void) {
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGINT);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGHUP);
    sigprocmask(SIG_BLOCK, &awaited, &as_before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool children_told_to_end(void) { return told_to_end != 0; }

/* Until a child changes or somebody tells the wrapper to end, but at most for so long. */
static void wait_a_moment(double seconds) {
    const struct timespec most = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    const int number = sigtimedwait(&awaited, NULL, &most);
    if (number > 0 && number != SIGCHLD)
        told_to_end = number;
}

static _Noreturn void stop_before(const char *what) {
    fprintf(stderr, "cannot become nobody: %s: %s\n", what, strerror(errno));
    _exit(CANNOT_EXECUTE);
}

static void write_whole(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
        stop_before(path);
    close(file);
}

/* The namespace of inter-process communication goes with it: a server that is killed leaves no shared memory. */
static void become_nobody(const char *folder) {
    char map[32];
    if (unshare(CLONE_NEWUSER | CLONE_NEWIPC) == 0) {
        snprintf(map, sizeof map, "%d 0 1", NOBODY);
        write_whole("/proc/self/setgroups", "deny"); /* else the groups may not be mapped */
        write_whole("/proc/self/uid_map", map);
        write_whole("/proc/self/gid_map", map);
        return;
    }
    if (chown(folder, NOBODY, NOBODY) != 0)
        stop_before(folder);
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
        stop_before("its user and groups");
}

pid_t child_start(char *const *command, bool never_root, const char *folder) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "cannot start %s: %s\n", command[0], strerror(errno));
        exit(1);
    }
    if (child > 0)
        return child;
    /* Here, not in the wrapper: a process may have no second thread, and an allocator may have given the wrapper one. */
    if (never_root && geteuid() == 0)
        become_nobody(folder);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user takes it back */
    if (getppid() != parent)          /* it died before the line above */
        _exit(1);
    int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0) {
        dup2(nowhere, STDIN_FILENO);
        dup2(nowhere, STDOUT_FILENO);
    }
    sigprocmask(SIG_SETMASK, &as_before, NULL);
    execvp(command[0], command);
    fprintf(stderr, "cannot execute %s: %s\n", command[0], strerror(errno));
    _exit(CANNOT_EXECUTE);
}

/* The status of waitpid. A child of a wrapper that is told to end is asked to end too, and then killed. */
static int status_at_the_end(pid_t child) {
    double asked_at = 0;
    for (;;) {
        int status = 0;
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended != 0)
            return ended == child ? status : CANNOT_EXECUTE << 8; /* as of an exit; musl has no W_EXITCODE */
        if (told_to_end && asked_at <= 0) {
            asked_at = now();
            kill(child, SIGTERM);
        } else if (told_to_end && now() - asked_at > patience_s) {
            kill(child, SIGKILL);
        }
        wait_a_moment(told_to_end ? patience_s / 8 : 3600);
    }
}

int child_wait(pid_t child, const char *name, int ending) {
    int status = status_at_the_end(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == ending)
        return 0;
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s was killed by signal %d (%s)\n", name, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        fprintf(stderr, "%s ended with status %d\n", name, WEXITSTATUS(status));
    return 1;
}

int child_asked(pid_t child) {
    int status = status_at_the_end(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void child_pause(double seconds) {
    for (double until = now() + seconds; !told_to_end && now() < until;)
        wait_a_moment(until - now());
}

void children_gone(void) {
    for (double begun = now(); now() - begun < orphans_s; wait_a_moment(0.01)) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (ended < 0)
            return;
    }
}

void children_obey(void) {
    if (!told_to_end)
        return;
    signal(told_to_end, SIG_DFL);
    sigprocmask(SIG_SETMASK, &as_before, NULL);
    raise(told_to_end);
}
