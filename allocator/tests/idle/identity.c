/* Who the process is changes for all of its threads, as far as it knows them: none is left with what the program has given up, and the library's
 * own never had its capabilities. When such a call returns, that thread is not even listed any more: the kernel counts it for who asks next.
 *
 * Each call in a process of its own. Without root they change nothing, or are refused; the thread goes all the same. */
#include <errno.h>
#include <grp.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <linux/capability.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "tasks.h"

int capset(void *header, void *data); /* libc's, in no header of its own */

enum { OTHER = 65534, OTHER_GROUP = 65533, ROUNDS = 4, HELD_MS = 20, WAKING_MS = 2000 };

static bool is_root;

static uid_t user(void) { return is_root ? OTHER : getuid(); }
static gid_t group(void) { return is_root ? OTHER : getgid(); }

/* One capability less; the rest of what the process may do stays. */
static struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
static struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

static void choose_capabilities(void) {
    EXPECT(syscall(SYS_capget, &header, data) == 0, "errno %d", errno);
    uint32_t left = ~(UINT32_C(1) << CAP_SYS_TIME);
    data[0].effective &= left;
    data[0].permitted &= left;
    data[0].inheritable &= left;
}

static long by_setuid(void) { return setuid(user()); }
static long by_setgid(void) { return setgid(group()); }
static long by_seteuid(void) { return seteuid(user()); }
static long by_setegid(void) { return setegid(group()); }
static long by_setreuid(void) { return setreuid(user(), user()); }
static long by_setregid(void) { return setregid(group(), group()); }
static long by_setresuid(void) { return setresuid(user(), user(), user()); }
static long by_setresgid(void) { return setresgid(group(), group(), group()); }
static long by_setgroups(void) { return setgroups(1, &(gid_t){OTHER_GROUP}); }
static long by_initgroups(void) { return initgroups("nobody", OTHER_GROUP); }
static long by_capset(void) { return capset(&header, data); }
static long by_syscall(void) { return syscall(SYS_capset, &header, data); }

static const struct {
    const char *name;
    long (*make)(void);
} calls[] = {
    {"setuid", by_setuid},         {"setgid", by_setgid},       {"seteuid", by_seteuid},
    {"setegid", by_setegid},       {"setreuid", by_setreuid},   {"setregid", by_setregid},
    {"setresuid", by_setresuid},   {"setresgid", by_setresgid}, {"setgroups", by_setgroups},
    {"initgroups", by_initgroups}, {"capset", by_capset},       {"capset by syscall", by_syscall},
};
enum { CALLS = sizeof calls / sizeof *calls };

/* By a large block that is freed: it wishes for the keeper at once. */
static long wake_keeper(void) {
    enum { BYTES = 8 << 20 };
    long keeper = 0;
    for (long end = tasks_clock() + WAKING_MS; (keeper = tasks_keeper()) == 0 && tasks_clock() < end; tasks_sleep(1)) {
        free(unseen(malloc(BYTES)));
    }
    EXPECT(keeper != 0, "nobody came");
    return keeper;
}

/* The line of the thread's status, with its end. False when the thread has gone. */
static bool read_line(long task, const char *key, char line[TASK_TEXT]) {
    char text[TASK_TEXT];
    if (!task_read(task, "status", text)) {
        return false;
    }
    const char *at = strstr(text, key);
    EXPECT(at != NULL, "no line of '%s'", key + 1);
    size_t length = strcspn(++at, "\n");
    memcpy(line, at, length);
    line[length] = '\0';
    return true;
}

static void check_lines(const char *key, const char *call) {
    char own[TASK_TEXT], other[TASK_TEXT];
    long number[TASKS_MOST];
    EXPECT(read_line(getpid(), key, own), "the process has no status");
    size_t count = tasks_list(number);
    for (size_t t = 0; t < count; t++) {
        EXPECT(!read_line(number[t], key, other) || strcmp(own, other) == 0, "after %s a thread has '%s', not '%s'",
               call, other, own);
    }
}

static void check_identity(const char *call) {
    check_lines("\nUid:", call);
    check_lines("\nGid:", call);
    check_lines("\nGroups:", call);
}

static void check_powerless(long keeper) {
    static const char *const sets[] = {"\nCapInh:", "\nCapPrm:", "\nCapEff:"};
    char line[TASK_TEXT];
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        EXPECT(!read_line(keeper, sets[i], line) || strspn(line + strlen(sets[i]) - 1, "\t0") == 17,
               "the library's thread has '%s'", line);
    }
}

static void change(size_t call) {
    const char *name = calls[call].name;
    choose_capabilities();
    long before = wake_keeper(), number[TASKS_MOST];
    check_powerless(before);
    long result = calls[call].make();
    int error = errno;
    size_t count = tasks_list(number);
    for (size_t t = 0; t < count; t++) {
        EXPECT(number[t] != before, "%s has returned, and the library's thread is there", name);
    }
    if (is_root && result != 0) {
        expect_skip("%s is refused to this root (errno %d)", name, error);
    }
    check_identity(name);
    check_powerless(wake_keeper());
    check_identity(name);
}

/* -- its end takes a while ------------------------------------------------------------------------------------- */

static int told[2], answered[2];

static void say(int end, long value) { EXPECT(write(end, &value, sizeof value) == sizeof value, "errno %d", errno); }

static long hear(int end) {
    long value = 0;
    return read(end, &value, sizeof value) == sizeof value ? value : 0;
}

/* Whoever counts the threads of the process then counts those that it knows. */
static void count_at_once(void) {
    for (int round = 0; round < ROUNDS; round++) {
        say(told[1], wake_keeper());
        if (hear(answered[0]) == 0) {
            expect_skip("the library's thread cannot be traced here");
        }
        EXPECT((round % 2 == 0 ? seteuid(geteuid()) : setegid(getegid())) == 0, "errno %d", errno);
        size_t threads = tasks_count();
        EXPECT(threads == 1, "%zu threads in round %d", threads, round);
    }
}

/* A thread that is traced is there until its tracer has seen its end, as others are for microseconds. */
static void hold_ended(void) {
    for (int round = 0; round < ROUNDS; round++) {
        pid_t keeper = (pid_t)hear(told[0]);
        if (keeper == 0) {
            return; /* the test has failed */
        }
        bool traced = ptrace(PTRACE_SEIZE, keeper, NULL, NULL) == 0;
        say(answered[1], traced);
        if (!traced) {
            return;
        }
        siginfo_t ended;
        EXPECT(waitid(P_PID, (id_t)keeper, &ended, WEXITED | WNOWAIT | __WALL) == 0, "errno %d", errno);
        tasks_sleep(HELD_MS);
        EXPECT(waitpid(keeper, NULL, __WALL) == keeper, "errno %d", errno);
    }
}

int main(void) {
    require_serving();
    if (getauxval(AT_BASE) == 0) { /* no dynamic linker: libc's calls cannot be stood before */
        expect_skip("in a static program the library does not hear of it (docs/reference/limits.md)");
    }
    is_root = geteuid() == 0;
    EXPECT(pipe(told) == 0 && pipe(answered) == 0, "no pipes");
    int failures = 0;
    for (size_t c = 0; c <= CALLS; c++) {
        pid_t process = fork();
        EXPECT(process >= 0, "fork failed");
        if (process == 0) {
            close(told[0]);
            c < CALLS ? change(c) : count_at_once();
            _exit(0);
        }
        if (c == CALLS) {
            close(told[1]);
            hold_ended();
        }
        int status = 0;
        EXPECT(waitpid(process, &status, 0) == process, "waitpid failed");
        bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_SKIPPED;
        printf("%s: %s\n", c < CALLS ? calls[c].name : "counted at once",
               status == 0 ? "holds"
               : skipped   ? "skipped"
                           : "FAILED");
        failures += status != 0 && !skipped;
    }
    return failures == 0 ? 0 : 1;
}
