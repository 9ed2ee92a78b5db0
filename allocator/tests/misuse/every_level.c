/* A block freed twice, at once or with one other freed between, is found in the second free: however many are in the magazines by then. Each
 * try is a child of its own, which _exit ends if it is let through. */
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { LEVELS = 260, FIRST = 4 }; /* more than two magazines hold */

static void *blocks[LEVELS + 2];

/* Frees `level` blocks and then one twice. */
static void misuse(size_t size, size_t level, bool between) {
    for (size_t i = 0; i < level + 2; i++) {
        blocks[i] = unseen(malloc(size));
    }
    for (size_t i = 0; i < level; i++) {
        free(blocks[i]);
    }
    void *block = blocks[level];
    free(block);
    if (between) {
        free(blocks[level + 1]);
    }
    free(unseen(block));
    _exit(0);
}

static void require_stopped(size_t size, size_t level, bool between) {
    pid_t child = fork();
    EXPECT(child >= 0, "fork failed");
    if (child == 0) {
        close(STDERR_FILENO); /* the lines are looked at elsewhere */
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        misuse(size, level, between);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child, "waitpid failed");
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
           "%zu bytes, %s, after %zu others: it went unnoticed (status 0x%x)", size,
           between ? "interleaved" : "at once", level, (unsigned)status);
}

int main(void) {
    static const size_t sizes[] = {1,    32,    48,    64,    200,   1024,  2048,   3000,  5000,
                                   8192, 12000, 16384, 30000, 40000, 65536, 100000, 262144};
    require_serving();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t levels = sizes[i] <= 8192 ? LEVELS : LEVELS / 8;
        size_t step = sizes[i] <= 64 ? 1 : 3;
        for (size_t level = 0; level < levels; level += step) {
            require_stopped(sizes[i], level, false);
            require_stopped(sizes[i], level, true);
        }
    }
    return 0;
}
