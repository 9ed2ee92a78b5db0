/* freestone-escort: runs one command of the lab's, and ends it with everything below when the lab is gone.
 *
 *   freestone-escort [--session] [--leave] --lifeline DESCRIPTOR -- COMMAND [ARGUMENT...]
 *
 * The lab holds the other end of the lifeline, a pipe. Its end of file says that the lab has closed it or is dead,
 * however it died. The command leads a process group of its own, or with --session a session. When it has ended, what
 * it left behind is ended too, or with --leave goes on: a setup may start a daemon.
 *
 * Its end is handed on: the exit status, or the same signal; a command that is stopped stops the escort. Exit status 2:
 * a wrong command line; 3: the command was broken off or could not be begun. */
#define _GNU_SOURCE
#include "../launcher/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRONG = 2, BROKEN_OFF = 3, KILLINGS = 1000 };

static const struct timespec killing_pause = {0, 5000000}; /* KILLINGS of them: what cannot be killed is given up */

struct options {
    bool session, leave;
    int lifeline;
    char *const *command;
};

struct escort {
    pid_t first;
    bool ended; /* the first one, with `status` */
    int status;
    bool childless;
};

static bool read_options(char **argv, struct options *options) {
    *options = (struct options){.lifeline = -1};
    char **word = argv + 1;
    for (; *word != NULL && strcmp(*word, "--") != 0; word++) {
        char *end;
        if (strcmp(*word, "--session") == 0) {
            options->session = true;
        } else if (strcmp(*word, "--leave") == 0) {
            options->leave = true;
        } else if (strcmp(*word, "--lifeline") == 0 && word[1] != NULL) {
            const long number = strtol(*++word, &end, 10);
            options->lifeline = *end == '\0' && number >= 0 && number < 1 << 20 ? (int)number : -1;
        } else {
            return false;
        }
    }
    options->command = *word == NULL ? word : word + 1;
    return *options->command != NULL && options->lifeline >= 0 && fcntl(options->lifeline, F_SETFD, FD_CLOEXEC) == 0;
}

static _Noreturn void become_the_command(const struct options *options, const sigset_t *mask) {
    /* Not in the escort's group: a command that signals its own group means itself. */
    if (options->session)
        setsid();
    else
        setpgid(0, 0);
    /* An escort that was killed cannot end the command any more: then the kernel does. */
    const pid_t escort = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != escort)
        _exit(BROKEN_OFF);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(options->command[0], options->command);
    fprintf(stderr, "freestone-escort: cannot start '%s': %s\n", options->command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* Takes every status there is. A stop of the first process is shown to the lab as one of the escort's own. */
static void reap(struct escort *escort) {
    for (;;) {
        int status;
        const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL);
        if (pid < 0 && errno == EINTR)
            continue;
        escort->childless = pid < 0;
        if (pid <= 0)
            return;
        if (pid == escort->first && WIFSTOPPED(status)) {
            raise(SIGSTOP);
        } else if (pid == escort->first) {
            escort->ended = true;
            escort->status = status;
        }
    }
}

/* Again and again: a process may have forked between the listing and the signal. What leaves its parents falls to the
 * escort, so the listing holds it. */
static void end_all(struct escort *escort) {
    for (int i = 0; i < KILLINGS; i++) {
        struct tree tree = {0};
        tree_list(&tree);
        tree_signal(&tree, SIGKILL);
        tree_free(&tree);
        reap(escort);
        if (escort->childless)
            return;
        nanosleep(&killing_pause, NULL);
    }
}

/* Until the command has ended: true; or until it is to be broken off. */
static bool wait_for_the_end(struct escort *escort, int signals, int lifeline) {
    struct pollfd polled[] = {{signals, POLLIN, 0}, {lifeline, POLLIN, 0}};
    for (;;) {
        reap(escort);
        if (escort->ended)
            return true;
        if (poll(polled, 2, -1) < 0)
            continue;
        struct signalfd_siginfo info;
        while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
            if (info.ssi_signo != SIGCHLD)
                return false;
        }
        if (polled[1].revents != 0)
            return false;
    }
}

static _Noreturn void leave_as(int status) {
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    const int number = WTERMSIG(status);
    const struct rlimit nothing = {0, 0};
    setrlimit(RLIMIT_CORE, &nothing); /* there is one of the command already */
    sigset_t all;
    sigfillset(&all);
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    _exit(128 + number);
}

int main(int argc, char **argv) {
    (void)argc;
    struct options options;
    if (!read_options(argv, &options)) {
        fputs("usage: freestone-escort [--session] [--leave] --lifeline DESCRIPTOR -- COMMAND [ARGUMENT...]\n", stderr);
        return WRONG;
    }
    signal(SIGCHLD, SIG_DFL); /* where it is ignored there is no status to wait for */
    sigset_t ours, inherited;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigprocmask(SIG_BLOCK, &ours, &inherited);
    const int signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0); /* stopped with its command it would not see the lifeline end */
    struct escort escort = {.first = signals < 0 ? -1 : fork()};
    if (escort.first == 0)
        become_the_command(&options, &inherited);
    if (escort.first < 0) {
        fprintf(stderr, "freestone-escort: cannot watch over a command: %s\n", strerror(errno));
        return BROKEN_OFF;
    }
    const bool ended = wait_for_the_end(&escort, signals, options.lifeline);
    if (!ended || !options.leave)
        end_all(&escort);
    if (!ended)
        return BROKEN_OFF;
    leave_as(escort.status);
}
