/* Runs a program in a control group of its own with a limit on memory: in_group MIB PROGRAM ARGUMENTS... The group is made below that of the
 * process, in version 1 or 2, and removed. Skipped where none may be made. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "expect.h"

enum { PATH = 1024 };

static char folder[PATH];

static bool write_file(const char *name, const char *text) {
    char path[PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0) {
        close(file);
    }
    return written;
}

/* A group with the limit at the place; false where that cannot be. */
static bool make(const char *place, const char *group, const char *file, const char *limit) {
    snprintf(folder, sizeof folder, "%s%s/freestone-%d", place, group, (int)getpid());
    if (mkdir(folder, 0755) != 0) {
        return false;
    }
    if (!write_file(file, limit)) {
        rmdir(folder);
        return false;
    }
    return true;
}

static bool make_any(const char *limit) {
    static char groups[65536];
    int file = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, groups, sizeof groups - 1);
    groups[length < 0 ? 0 : length] = '\0';
    if (file >= 0) {
        close(file);
    }
    for (char *line = strtok(groups, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *older = strstr(line, ":memory:");
        if (older != NULL &&
            make("/sys/fs/cgroup/memory", older + strlen(":memory:"), "memory.limit_in_bytes", limit)) {
            return true;
        }
        if (strncmp(line, "0::", 3) == 0 && (make("/sys/fs/cgroup", line + 3, "memory.max", limit) ||
                                             make("/sys/fs/cgroup/unified", line + 3, "memory.max", limit))) {
            return true;
        }
    }
    return false;
}

int main(int count, char **argument) {
    EXPECT(count > 2, "no program");
    char limit[32];
    snprintf(limit, sizeof limit, "%lld", atoll(argument[1]) << 20);
    if (!make_any(limit)) {
        expect_skip("no control group for memory may be made here");
    }
    pid_t child = fork();
    EXPECT(child >= 0, "no process");
    if (child == 0) {
        char number[32];
        snprintf(number, sizeof number, "%d", (int)getpid());
        EXPECT(write_file("cgroup.procs", number), "it cannot be put into %s", folder);
        (void)!write_file("memory.swap.max", "0");
        execv(argument[2], argument + 2);
        EXPECT(false, "%s cannot be run", argument[2]);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    for (int tries = 0; rmdir(folder) != 0 && tries < 1000; tries++) {
        usleep(1000);
    }
    EXPECT(WIFEXITED(status), "it was ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}
