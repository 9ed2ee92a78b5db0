/* stopped PROGRAM [ARGUMENT ...]: runs a program of misuse and requires that it was stopped by SIGABRT, having written on standard
 * error exactly the one line it announced on standard output. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../expect.h"

enum { TEXT_MOST = 4096 };

static size_t read_all(int from, char text[TEXT_MOST]) {
    size_t length = 0;
    ssize_t got;
    while (length < TEXT_MOST - 1 && (got = read(from, text + length, TEXT_MOST - 1 - length)) > 0) {
        length += (size_t)got;
    }
    text[length] = '\0';
    close(from);
    return length;
}

int main(int count, char **arguments) {
    EXPECT(count >= 2, "usage: stopped PROGRAM [ARGUMENT ...]");
    int output[2];
    int error[2];
    EXPECT(pipe(output) == 0 && pipe(error) == 0, "no pipe");
    pid_t program = fork();
    EXPECT(program >= 0, "fork failed");
    if (program == 0) {
        struct rlimit none = {0};
        setrlimit(RLIMIT_CORE, &none); /* an abort that is wanted leaves no core file */
        dup2(output[1], STDOUT_FILENO);
        dup2(error[1], STDERR_FILENO);
        close(output[0]);
        close(output[1]);
        close(error[0]);
        close(error[1]);
        execv(arguments[1], arguments + 1);
        _exit(126);
    }
    close(output[1]);
    close(error[1]);
    static char announced[TEXT_MOST];
    static char said[TEXT_MOST];
    /* Both are far below what a pipe holds, so one may be read after the other. */
    read_all(output[0], announced);
    size_t length = read_all(error[0], said);
    int status = 0;
    EXPECT(waitpid(program, &status, 0) == program, "waitpid failed");
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_SKIPPED) {
        expect_skip("%.*s", (int)strcspn(said, "\n"), said);
    }
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "it ended with status 0x%x and said: %s",
           (unsigned)status, said);
    static char wanted[TEXT_MOST + 16];
    int wanted_length = snprintf(wanted, sizeof wanted, "freestone: %s\n", announced);
    EXPECT(length == (size_t)wanted_length && strcmp(said, wanted) == 0, "it said: %sinstead of: %s", said, wanted);
    return 0;
}
