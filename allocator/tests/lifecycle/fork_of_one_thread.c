/* A program of one thread makes a process without libc's fork, whose handlers do not run then: what the child frees is used again, and the parent
 * goes on. And its end by a system call has the status that it says.
 *
 *   fork_of_one_thread clone|clone3|libc_clone|fork|_Fork|exit */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../idle/field.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "whole_child.h"

enum { STATUS = 3 };

static int run_child(void *argument) {
    (void)argument;
    whole_child();
}

static pid_t make_process(const char *how) {
    if (strcmp(how, "clone") == 0) {
        return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    }
    if (strcmp(how, "clone3") == 0) {
        EXPECT(syscall(SYS_clone3, NULL, 0) == -1, "a question is answered");
        struct clone_args asked = {.exit_signal = SIGCHLD};
        return (pid_t)syscall(SYS_clone3, &asked, sizeof asked);
    }
    if (strcmp(how, "libc_clone") == 0) {
        static char stack[256 << 10] __attribute__((aligned(16)));
        return clone(run_child, stack + sizeof stack, SIGCHLD, NULL);
    }
#ifdef SYS_fork
    if (strcmp(how, "fork") == 0) {
        return (pid_t)syscall(SYS_fork);
    }
#endif
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 34)
    if (strcmp(how, "_Fork") == 0) {
        return _Fork();
    }
#endif
    expect_skip("there is no %s here", how);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: fork_of_one_thread clone|clone3|libc_clone|fork|_Fork|exit");
    int status = 0;
    if (strcmp(arguments[1], "exit") == 0) {
        pid_t child = fork();
        if (child == 0) {
            field_wake_keeper();
            syscall(SYS_exit, STATUS);
        }
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == STATUS,
               "it ended with status 0x%x", (unsigned)status);
        return 0;
    }
    for (int round = 0; round < 3; round++) {
        field_wake_keeper();
        pid_t child = make_process(arguments[1]);
        EXPECT(child >= 0, "no process");
        if (child == 0) {
            whole_child();
        }
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status 0x%x",
               (unsigned)status);
        field_clear();
    }
    return 0;
}
