/* A function that has overwritten its own frame does not return: one line, and the process aborts. */
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "expect.h"

/* Not inlined, so that its frame is its own; volatile, so that each byte is written. */
static __attribute__((noinline)) int overflow(volatile size_t bytes) {
    volatile char room[16];
    for (size_t i = 0; i < bytes; i++) {
        ((volatile char *)room)[i] = 1;
    }
    return room[0];
}

int main(void) {
    enum { INSIDE = 16, BEYOND = 40 };
    EXPECT(overflow(INSIDE) == 1, "it does not even write");
    int ends[2];
    EXPECT(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    EXPECT(child >= 0, "no fork");
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        _exit(overflow(BEYOND));
    }
    close(ends[1]);
    char said[256] = "";
    (void)!read(ends[0], said, sizeof said - 1);
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
           "it ended with %#x", (unsigned)status);
    EXPECT(strstr(said, "freestone: overflow of the stack") == said, "it said '%s'", said);
    return 0;
}
