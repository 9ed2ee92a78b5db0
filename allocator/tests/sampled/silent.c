/* silent PROGRAM [ARGUMENT ...]: runs a healthy program, and requires that it ends with 0 and that nothing is said on standard error. */
#include <sys/wait.h>

#include "../expect.h"

enum { TEXT_MOST = 4096 };

int main(int count, char **arguments) {
    EXPECT(count >= 2, "usage: silent PROGRAM [ARGUMENT ...]");
    int error[2];
    EXPECT(pipe(error) == 0, "no pipe");
    pid_t program = fork();
    EXPECT(program >= 0, "fork failed");
    if (program == 0) {
        dup2(error[1], STDERR_FILENO);
        close(error[0]);
        close(error[1]);
        execv(arguments[1], arguments + 1);
        _exit(126);
    }
    close(error[1]);
    static char said[TEXT_MOST];
    size_t length = 0;
    ssize_t got;
    while (length < TEXT_MOST - 1 && (got = read(error[0], said + length, TEXT_MOST - 1 - length)) > 0) {
        length += (size_t)got;
    }
    close(error[0]); /* what says more ends by SIGPIPE */
    int status = 0;
    EXPECT(waitpid(program, &status, 0) == program, "waitpid failed");
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_SKIPPED) {
        expect_skip("%.*s", (int)strcspn(said, "\n"), said);
    }
    EXPECT(status == 0 && length == 0, "it ended with status 0x%x and said: %s", (unsigned)status, said);
    return 0;
}
