/* own_calls LIBRARY PROGRAM [ARGUMENT ...]: watches a program that runs under no filter and holds the library to the
 * system calls that it is known to make: docs/reference/system-calls.md tells filters' authors which. Those of harden=1 and guard=1 may be made
 * only where FREESTONE_OPTIONS says so. */
#include <fcntl.h>
#include <libgen.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "expect.h"
#include "traced.h"

/* Of any thread that allocates; `most` 0 is any number. */
static struct {
    const char *name;
    long number;
    size_t most, made;
} served[] = {
    {"mmap", SYS_mmap, 0, 0},
    {"munmap", SYS_munmap, 0, 0},
    {"mremap", SYS_mremap, 0, 0},
    {"madvise", SYS_madvise, 0, 0},
    {"mprotect", SYS_mprotect, 0, 0},
    {"futex", SYS_futex, 0, 0},
    /* How densely memory was written that may have huge pages. */
    {"mincore", SYS_mincore, 0, 0},
    {"sched_getaffinity", SYS_sched_getaffinity, 1, 0},
    /* What the process was started with, when the library is loaded, under harden=1 by another file; and later its control group's limit. */
    {"openat", SYS_openat, 0, 0},
    {"read", SYS_read, 0, 0},
    {"close", SYS_close, 0, 0},
    /* Around the start of the keeper, and its end. */
    {"getpid", SYS_getpid, 0, 0},
    {"gettid", SYS_gettid, 0, 0},
    {"tgkill", SYS_tgkill, 0, 0},
    {"rt_sigprocmask", SYS_rt_sigprocmask, 0, 0},
    {"clone", SYS_clone, 0, 0},
    {"prlimit64", SYS_prlimit64, 0, 0},
    /* When a further thread first allocates. */
    {"prctl", SYS_prctl, 0, 0},
    /* Of harden=1 and guard=1. */
    {"getrandom", SYS_getrandom, 0, 0},
    {"rt_sigaction", SYS_rt_sigaction, 0, 0},
};

static struct {
    const char *name;
    long number;
    size_t most, made;
} kept[] = {
    {"futex", SYS_futex, 0, 0},
    {"madvise", SYS_madvise, 0, 0},
    {"munmap", SYS_munmap, 0, 0},
    {"exit", SYS_exit, 0, 0},
    {"prctl", SYS_prctl, 0, 0},
    {"capset", SYS_capset, 0, 0},
    {"sched_setaffinity", SYS_sched_setaffinity, 0, 0},
    {"sched_setscheduler", SYS_sched_setscheduler, 0, 0},
    {"setpriority", SYS_setpriority, 0, 0},
    {"capget", SYS_capget, 0, 0},
    {"getresuid", SYS_getresuid, 0, 0},
    {"getresgid", SYS_getresgid, 0, 0},
    {"getpid", SYS_getpid, 0, 0},
    /* Whether threads are gone whose caches nobody uses. */
    {"gettid", SYS_gettid, 0, 0},
    {"tgkill", SYS_tgkill, 0, 0},
};

/* A second file that may be opened, once; NULL by default. */
static const char *second_file;
static bool in_mode; /* guarded or hardened */
static size_t starts, seconds;

/* Files that tell the limit of the process's control group. */
static bool tells_limit(const char *path) {
    static const char *const names[] = {"/proc/self/cgroup", "/proc/self/mountinfo"};
    static const char *const ends[] = {"/memory.max", "/memory.high", "/memory.limit_in_bytes"};
    bool tells = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tells |= strcmp(path, names[i]) == 0;
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t length = strlen(path), end = strlen(ends[i]);
        tells |= length > end && strcmp(path + length - end, ends[i]) == 0;
    }
    return tells;
}

static void look_closer(const struct traced_call *call) {
    char path[1024];
    if (call->number == SYS_openat) {
        EXPECT(traced_text(call, call->arguments[1], path, sizeof path), "an unknown file is opened");
        bool status = strcmp(path, "/proc/thread-self/status") == 0;
        bool second = second_file != NULL && strcmp(path, second_file) == 0;
        starts += status;
        seconds += second;
        EXPECT((status && starts == 1) || (second && seconds == 1) || tells_limit(path), "the library opens %s", path);
        EXPECT((call->arguments[2] & (O_ACCMODE | O_CLOEXEC)) == O_CLOEXEC, "%s is opened with flags %#llx", path,
               (unsigned long long)call->arguments[2]);
    }
    EXPECT(in_mode || (call->number != SYS_getrandom && call->number != SYS_rt_sigaction), "system call %ld by default",
           call->number);
    if (call->number == SYS_prctl) {
        uint64_t option = call->arguments[0];
        EXPECT(call->keeper ? option == PR_SET_NAME || option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP
                            : option == PR_SET_NAME || option == PR_GET_TID_ADDRESS,
               "prctl(%llu)", (unsigned long long)option);
    }
    if (call->number == SYS_tgkill) {
        EXPECT(call->arguments[2] == 0, "signal %llu is sent", (unsigned long long)call->arguments[2]);
    }
}

static int judge(struct trace *trace, const struct traced_call *call) {
    (void)trace;
    look_closer(call);
    for (size_t i = 0; call->keeper && i < sizeof kept / sizeof *kept; i++) {
        if (call->number == kept[i].number) {
            kept[i].made++;
            return 0;
        }
    }
    for (size_t i = 0; !call->keeper && i < sizeof served / sizeof *served; i++) {
        if (call->number == served[i].number) {
            served[i].made++;
            EXPECT(served[i].most == 0 || served[i].made <= served[i].most, "%s for the %zuth time", served[i].name,
                   served[i].made);
            return 0;
        }
    }
    EXPECT(0, "the library makes system call %ld (%#llx) in a thread of %s", call->number,
           (unsigned long long)call->arguments[0], call->keeper ? "its own" : "the program's");
    return 0;
}

static void ignore(struct trace *trace, long word) {
    (void)trace;
    (void)word;
}

int main(int count, char **arguments) {
    EXPECT(count >= 3, "usage: own_calls LIBRARY PROGRAM [ARGUMENT ...]");
    const char *options = getenv("FREESTONE_OPTIONS");
    in_mode = options != NULL && (strcmp(options, "harden=1") == 0 || strcmp(options, "guard=1") == 0);
    second_file = in_mode && strcmp(options, "harden=1") == 0 ? "/proc/sys/vm/max_map_count" : NULL;
    struct trace trace = {judge, ignore, basename(arguments[1])};
    int status = traced_run(&trace, arguments + 2);
    EXPECT(status == 0, "wait status %#x", (unsigned)status);
    size_t in_keeper = 0, in_program = 0;
    for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
        printf("%s: %zu\n", served[i].name, served[i].made);
        in_program += served[i].made;
    }
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        printf("%s in the keeper: %zu\n", kept[i].name, kept[i].made);
        in_keeper += kept[i].made;
    }
    EXPECT(in_program > 0 && in_keeper > 0, "no call of the library was seen in the program's threads or in its own");
    return 0;
}
