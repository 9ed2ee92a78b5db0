/* A program that puts a filter on under which what only starts and furnishes a thread is death, and so is a look at files or at itself. It
 * frees much for a second and lives, in whichever way it has put the filter on, before the library has a thread of its own and beside one.
 *
 *   sealed [WAY before_keeper|beside_keeper]      WAY: a number of enum filter_way; without: each, at the same time */
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../faults/filter.h"
#include "../idle/field.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

extern char **environ;

enum { BLOCKS = 300000, BLOCK_BYTES = 160, KEPT_IN = 200, WORK_MS = 1000, TURNS_LEAST = 3 };

static const long deadly[] = {
    SYS_openat,
#ifdef SYS_open
    SYS_open,
#endif
    SYS_clone,
#ifdef SYS_clone3
    SYS_clone3,
#endif
    SYS_prctl,
    SYS_capset,
    SYS_sched_getaffinity,
    SYS_sched_setaffinity,
    SYS_sched_getscheduler,
    SYS_sched_setscheduler,
    SYS_sched_getparam,
    SYS_sched_setparam,
    SYS_sched_setattr,
    SYS_setpriority,
    SYS_rt_sigprocmask,
    SYS_getpid,
    SYS_gettid,
};

static const struct filter filter = {deadly, sizeof deadly / sizeof *deadly, false, FILTER_KILLS};
static void *blocks[BLOCKS];

/* Nearly all of 48 MiB, here and there; nothing is asked of /proc. */
static void free_much(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_BYTES);
        EXPECT(blocks[i] != NULL, "malloc(%d) failed", BLOCK_BYTES);
        memset(blocks[i], (int)i, BLOCK_BYTES);
    }
    for (int last = 0; last < 2; last++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            if (last || i % KEPT_IN != 0) {
                free(blocks[i]);
                blocks[i] = NULL;
            }
        }
        tasks_sleep(20);
    }
}

/* The number behind `key` in the file, which was opened before. */
static long status_number(int file, const char *key) {
    char text[TASK_TEXT];
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    EXPECT(length > 0, "/proc/self/status is empty");
    text[length] = '\0';
    const char *found = strstr(text, key);
    EXPECT(found != NULL, "no %s in /proc/self/status", key);
    return strtol(found + strlen(key), NULL, 10);
}

static int run_all(void) {
    static char *const when[] = {"before_keeper", "beside_keeper"};
    enum { RUNS = 2 * FILTER_WAYS };
    pid_t process[RUNS];
    int failures = 0, skipped = 0;
    for (int r = 0; r < RUNS; r++) {
        char way[] = {(char)('0' + r / 2), '\0'};
        char *command[] = {"sealed", way, when[r % 2], NULL};
        EXPECT(posix_spawn(&process[r], "/proc/self/exe", NULL, NULL, command, environ) == 0, "posix_spawn failed");
    }
    for (int r = 0; r < RUNS; r++) {
        int status = 0;
        EXPECT(waitpid(process[r], &status, 0) == process[r], "waitpid failed");
        bool skips = WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_SKIPPED;
        printf("way %d, %s: %s\n", r / 2, when[r % 2], status == 0 ? "holds" : skips ? "skipped" : "FAILED");
        failures += status != 0 && !skips;
        skipped += skips;
    }
    return failures > 0 ? 1 : skipped > 0 ? EXPECT_SKIPPED : 0;
}

int main(int count, char **arguments) {
    require_serving();
    if (count == 1) {
        return run_all();
    }
    EXPECT(count == 3, "usage: sealed [WAY before_keeper|beside_keeper]");
    long way = strtol(arguments[1], NULL, 10);
    EXPECT(way >= 0 && way < FILTER_WAYS, "there is no way %ld", way);
    int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    EXPECT(status >= 0, "/proc/self/status cannot be opened");
    free(unseen(malloc(1)));
    if (strcmp(arguments[2], "beside_keeper") == 0) {
        field_wake_keeper();
        EXPECT(status_number(status, "\nThreads:") == 2, "the keeper is not seen");
    }
    filter_enter_by(&filter, (enum filter_way)way);
    size_t turns = 0;
    for (long end = tasks_clock() + WORK_MS; tasks_clock() < end || turns < TURNS_LEAST; turns++) {
        free_much();
    }
    EXPECT(status_number(status, "\nSeccomp:") == 2, "there is no filter, and nothing was tested");
    EXPECT(status_number(status, "\nThreads:") == 1, "a thread was started under the filter");
    _exit(0);
}
