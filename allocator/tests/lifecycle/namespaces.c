/* A program with one thread may enter namespaces that the kernel gives to no process with more, and may do so as well while the keeper lives,
 * of which it knows nothing. What the kernel refuses this program anyhow is left out.
 *
 *   namespaces [DEED alone|beside_keeper]      without: each deed alone, and then beside the keeper */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../idle/field.h"
#include "expect.h"
#include "serving.h"

extern char **environ;

static bool new_user(void) { return unshare(CLONE_NEWUSER) == 0; }

static bool new_user_by_syscall(void) { return syscall(SYS_unshare, CLONE_NEWUSER) == 0; }

static bool new_mounts(void) { return unshare(CLONE_NEWNS) == 0; }

/* Into the one that it is in: the kernel asks the same as for any other. */
static bool into_mounts(void) {
    int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return mounts >= 0 && setns(mounts, CLONE_NEWNS) == 0;
}

static bool into_mounts_by_syscall(void) {
    int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return mounts >= 0 && syscall(SYS_setns, mounts, CLONE_NEWNS) == 0;
}

static const struct {
    char *name;
    bool (*done)(void);
} deeds[] = {
    {"unshare(CLONE_NEWUSER)", new_user},
    {"syscall(SYS_unshare, CLONE_NEWUSER)", new_user_by_syscall},
    {"unshare(CLONE_NEWNS)", new_mounts},
    {"setns(CLONE_NEWNS)", into_mounts},
    {"syscall(SYS_setns, CLONE_NEWNS)", into_mounts_by_syscall},
};

enum { DEEDS = sizeof deeds / sizeof *deeds };

static int run(size_t deed, char *beside) {
    char number[] = {(char)('0' + deed), '\0'};
    char *command[] = {"namespaces", number, beside, NULL};
    pid_t process;
    int status = 0;
    EXPECT(posix_spawn(&process, "/proc/self/exe", NULL, NULL, command, environ) == 0, "posix_spawn failed");
    EXPECT(waitpid(process, &status, 0) == process, "waitpid failed");
    return status;
}

static int run_all(void) {
    size_t failed = 0, tried = 0;
    for (size_t d = 0; d < DEEDS; d++) {
        bool allowed = run(d, "alone") == 0;
        bool done = allowed && run(d, "beside_keeper") == 0;
        printf("%s: %s\n", deeds[d].name, done ? "holds" : allowed ? "FAILED" : "skipped");
        tried += allowed;
        failed += allowed && !done;
    }
    if (tried == 0) {
        expect_skip("the kernel refuses this program all of these namespaces");
    }
    return failed == 0 ? 0 : 1;
}

int main(int count, char **arguments) {
    require_serving();
    if (count == 1) {
        return run_all();
    }
    EXPECT(count == 3, "usage: namespaces [DEED alone|beside_keeper]");
    size_t deed = strtoul(arguments[1], NULL, 10);
    EXPECT(deed < DEEDS, "there is no deed %zu", deed);
    bool beside = strcmp(arguments[2], "beside_keeper") == 0;
    if (beside) {
        field_wake_keeper();
    }
    EXPECT(deeds[deed].done(), "%s, %s: errno %d", deeds[deed].name, arguments[2], errno);
    if (beside) {
        field_check("in another namespace");
        field_clear();
    }
    return 0;
}
