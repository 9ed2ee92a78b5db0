#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t child_start(char *const *command) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "cannot start %s: %s\n", command[0], strerror(errno));
        exit(1);
    }
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(1);
    int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0) {
        dup2(nowhere, STDIN_FILENO);
        dup2(nowhere, STDOUT_FILENO);
    }
    execvp(command[0], command);
    fprintf(stderr, "cannot execute %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

int child_wait(pid_t child, const char *name, int ending) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 1;
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
