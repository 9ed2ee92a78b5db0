/* What a program that does nothing pays for its start under an allocator.
 *
 *   start resident     its resident memory in KiB, the mean of many starts: pages of files that the kernel maps around a fault hang on
 *                      the libraries' random addresses, 80 KiB more or less a start
 *   start told         the program, which says its resident memory
 *   start calls        system calls more than with a library that is empty (nothing_library.c)
 *   start nodes        whether it looks for the machine's memory nodes
 *   start time         microseconds to start and end, median
 *   start nothing      the program */
#include "hazard.h"

#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/user.h>

enum { CALLS_MOST = 7, STARTS = 301 };

extern char **environ;

/* Starts `start nothing`, counts its system calls and those that open a file whose name begins with `prefix`. */
static size_t calls_of_a_start(const char *preload, const char *prefix, size_t *opened) {
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        setenv("LD_PRELOAD", preload, 1);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execl("/proc/self/exe", "start", "nothing", NULL);
        _exit(127);
    }
    int status = 0;
    size_t stops = 0;
    *opened = 0;
    EXPECT(waitpid(process, &status, 0) == process && WIFSTOPPED(status), "nothing can be traced here");
    while (ptrace(PTRACE_SYSCALL, process, NULL, NULL) == 0 && waitpid(process, &status, 0) == process &&
           !WIFEXITED(status)) {
        EXPECT(!WIFSIGNALED(status), "it ended by signal %d", WTERMSIG(status));
        struct user_regs_struct registers;
        if (stops++ % 2 == 0 && ptrace(PTRACE_GETREGS, process, NULL, &registers) == 0 &&
            registers.orig_rax == SYS_openat) {
            char name[65] = {0};
            for (size_t at = 0; at < 64; at += 8) {
                long word = ptrace(PTRACE_PEEKDATA, process, (char *)registers.rsi + at, NULL);
                memcpy(name + at, &word, 8);
            }
            *opened += strncmp(name, prefix, strlen(prefix)) == 0;
        }
    }
    EXPECT(status == 0, "it ended with status %#x", (unsigned)status);
    return stops / 2;
}

static int ascending(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static uint64_t time_of_a_start(void) {
    static uint64_t taken[STARTS];
    for (size_t i = 0; i < STARTS; i++) {
        char *command[] = {"start", "nothing", NULL};
        pid_t process;
        uint64_t start = nanoseconds();
        EXPECT(posix_spawn(&process, "/proc/self/exe", NULL, NULL, command, environ) == 0, "posix_spawn failed");
        int status = 0;
        EXPECT(waitpid(process, &status, 0) == process && status == 0, "it ended with status %#x", (unsigned)status);
        taken[i] = nanoseconds() - start;
    }
    qsort(taken, STARTS, sizeof *taken, ascending);
    return taken[STARTS / 2];
}

static size_t resident_of_a_start(void) {
    int told[2];
    EXPECT(pipe(told) == 0, "pipe failed");
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        dup2(told[1], STDOUT_FILENO);
        execl("/proc/self/exe", "start", "told", NULL);
        _exit(127);
    }
    close(told[1]);
    char text[32] = {0};
    ssize_t length = read(told[0], text, sizeof text - 1);
    close(told[0]);
    int status = 0;
    EXPECT(waitpid(process, &status, 0) == process && status == 0 && length > 0, "it ended with status %#x",
           (unsigned)status);
    return strtoul(text, NULL, 10);
}

static size_t mean_resident(void) {
    size_t sum = 0;
    for (size_t i = 0; i < STARTS; i++) {
        sum += resident_of_a_start();
    }
    return sum / STARTS;
}

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: start resident|told|calls|nodes|time|nothing");
    if (strcmp(arguments[1], "nothing") == 0) {
        free(unseen(malloc(1)));
        return 0;
    }
    /* Looked at before the proof: that calls much of libc, and a program that does nothing would not. */
    bool told = strcmp(arguments[1], "told") == 0;
    if (told) {
        free(unseen(malloc(1)));
    }
    size_t resident = told ? resident_kib() : 0;
    require_serving();
    const char *preload = getenv("HAZARD_PRELOAD"), *built = getenv("HAZARD_BUILT");
    EXPECT(preload != NULL && built != NULL, "nobody said what is asked");
    size_t opened;
    if (told) {
        printf("%zu\n", resident);
    } else if (strcmp(arguments[1], "resident") == 0) {
        printf("%zu\n", mean_resident());
    } else if (strcmp(arguments[1], "time") == 0) {
        printf("%.1f\n", (double)time_of_a_start() / 1000);
    } else if (strcmp(arguments[1], "nodes") == 0) {
        (void)calls_of_a_start(preload, "/sys/devices/system/node", &opened);
        EXPECT(opened == 0, "it opens %zu files of /sys/devices/system/node", opened);
        printf("it does not look\n");
    } else {
        char nothing[512];
        snprintf(nothing, sizeof nothing, "%s/nothing_library.so", built);
        size_t least = calls_of_a_start(nothing, "/", &opened), own = calls_of_a_start(preload, "/", &opened);
        EXPECT(own <= least + CALLS_MOST, "%zu system calls more than with an empty library, at most %d", own - least,
               CALLS_MOST);
        printf("%zd system calls more than with an empty library\n", (ssize_t)own - (ssize_t)least);
    }
    return 0;
}
