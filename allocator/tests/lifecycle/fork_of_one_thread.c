/* A program of one thread makes a process without libc's fork, whose handlers do not run then: what the child frees is used again, and the parent
 * goes on. And its end by a system call has the status that it says.
 *
 *   fork_of_one_thread clone|fork|_Fork|exit */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum {
    LARGE = 9000,
    LARGE_BLOCKS = 4000,
    BLOCKS = 200000,
    SIZE = 1040,
    KEPT_EACH = 1000,
    MORE_KIB_MOST = 32 << 10,
    STATUS = 3
};

/* So that there is a keeper. */
static void swing(void) {
    static char *block[LARGE_BLOCKS];
    for (size_t i = 0; i < LARGE_BLOCKS; i++) {
        block[i] = malloc(LARGE);
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], 1, LARGE);
    }
    for (size_t i = 0; i < LARGE_BLOCKS; i++) {
        free(block[i]);
    }
    free(unseen(malloc(300000)));
    long number[TASKS_MOST];
    for (int waited = 0; tasks_list(number) < 2; waited++) {
        EXPECT(waited < 1000, "there is no keeper");
        tasks_sleep(1);
    }
}

static void work_as_child(void) {
    size_t before = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % KEPT_EACH == 0) {
            EXPECT(unseen(malloc(40)) != NULL, "no memory in the child");
        }
        char *block = unseen(malloc(SIZE));
        EXPECT(block != NULL, "no memory in the child");
        memset(block, 1, SIZE);
        free(block);
    }
    size_t after = resident_kib();
    EXPECT(after < before + MORE_KIB_MOST, "blocks that are freed at once cost the child %zu MiB",
           (after - before) >> 10);
    _exit(0);
}

static pid_t make_process(const char *how) {
    if (strcmp(how, "clone") == 0) {
        return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
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
    EXPECT(count == 2, "usage: fork_of_one_thread clone|fork|_Fork|exit");
    int status = 0;
    if (strcmp(arguments[1], "exit") == 0) {
        pid_t child = fork();
        if (child == 0) {
            swing();
            syscall(SYS_exit, STATUS);
        }
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == STATUS,
               "it ended with status 0x%x", (unsigned)status);
        return 0;
    }
    for (int round = 0; round < 3; round++) {
        swing();
        pid_t child = make_process(arguments[1]);
        EXPECT(child >= 0, "no process");
        if (child == 0) {
            work_as_child();
        }
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status 0x%x",
               (unsigned)status);
    }
    return 0;
}
