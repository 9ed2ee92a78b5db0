/* confine PROGRAM ARGUMENT: starts the program under one filter after the other, all at the same time, and none may
 * hurt it. The filters refuse what glibc's malloc and ordinary programs do not call, by an error or by death.
 * ARGUMENT tells the program how many threads it may start. */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "expect.h"
#include "filter.h"

/* What a program under glibc or musl makes from its start to its end when it does nothing but allocate, look into
 * /proc and sleep; and what threads add. */
static const long life[] = {
    SYS_execve,
    SYS_exit_group,
    SYS_exit,
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_futex,
    SYS_openat,
    SYS_read,
    SYS_pread64,
    SYS_write,
    SYS_writev,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_getdents64,
    SYS_lseek,
    SYS_readlinkat,
    SYS_faccessat,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_prlimit64,
    SYS_getrandom,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_ioctl,
    SYS_fcntl,
    SYS_statx,
#ifdef __x86_64__
    SYS_arch_prctl,
    SYS_access,
    SYS_readlink,
    SYS_open,
    SYS_alarm,
    SYS_stat,
    SYS_time,
#else
    SYS_setitimer,
#endif
    SYS_clone,
    SYS_clone3, /* last: not for one thread */
};
enum { LIFE = sizeof life / sizeof *life, OF_THREADS = 2 };

/* What systemd's SystemCallFilter=~@privileged refuses, as far as every architecture has it. */
static const long privileged[] = {
    SYS_acct,          SYS_adjtimex,      SYS_bpf,          SYS_capset,      SYS_chroot,        SYS_clock_adjtime,
    SYS_clock_settime, SYS_delete_module, SYS_fchown,       SYS_fchownat,    SYS_finit_module,  SYS_init_module,
    SYS_kexec_load,    SYS_pivot_root,    SYS_quotactl,     SYS_reboot,      SYS_setdomainname, SYS_setfsgid,
    SYS_setfsuid,      SYS_setgid,        SYS_setgroups,    SYS_sethostname, SYS_setregid,      SYS_setresgid,
    SYS_setresuid,     SYS_setreuid,      SYS_settimeofday, SYS_setuid,      SYS_swapoff,       SYS_swapon,
    SYS_vhangup,
};

/* And its ~@resources. */
static const long resources[] = {
    SYS_ioprio_set,        SYS_mbind,         SYS_migrate_pages,  SYS_move_pages,
    SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam, SYS_sched_setscheduler,
    SYS_set_mempolicy,     SYS_setpriority,   SYS_setrlimit,
};

#define ONE(call)                                                                   \
    {#call, {(const long[]){SYS_##call}, 1, false, FILTER_KILLS}, true},            \
        {#call " by EPERM", {(const long[]){SYS_##call}, 1, false, EPERM}, true}, { \
        #call " by ENOSYS", {(const long[]){SYS_##call}, 1, false, ENOSYS}, true    \
    }

static const struct {
    const char *name;
    struct filter filter;
    bool threads; /* may be started under it */
} filters[] = {
    {"all but an ordinary life", {life, LIFE, true, FILTER_KILLS}, true},
    {"all but the life of one thread", {life, LIFE - OF_THREADS, true, FILTER_KILLS}, false},
    {"all but an ordinary life, by EPERM", {life, LIFE, true, EPERM}, true},
    {"@privileged", {privileged, sizeof privileged / sizeof *privileged, false, FILTER_KILLS}, true},
    {"@resources", {resources, sizeof resources / sizeof *resources, false, FILTER_KILLS}, true},
    {"clone, by EPERM", {(const long[]){SYS_clone, SYS_clone3}, 2, false, EPERM}, false},
    ONE(prctl),
    ONE(capset),
    ONE(capget),
    ONE(membarrier),
    ONE(sched_setaffinity),
    ONE(sched_setscheduler),
    ONE(setpriority),
    {"sched_getaffinity by EPERM", {(const long[]){SYS_sched_getaffinity}, 1, false, EPERM}, true},
    {"mremap by ENOSYS", {(const long[]){SYS_mremap}, 1, false, ENOSYS}, true},
    {"madvise by EPERM", {(const long[]){SYS_madvise}, 1, false, EPERM}, false}, /* nothing can be returned */
};
enum { FILTERS = sizeof filters / sizeof *filters };

int main(int count, char **arguments) {
    EXPECT(count == 3, "usage: confine PROGRAM alone|threads");
    bool threads = strcmp(arguments[2], "threads") == 0;
    pid_t program[FILTERS] = {0};
    size_t failures = 0, skipped = 0, held = 0;
    for (size_t f = 0; f < FILTERS; f++) {
        if (threads && !filters[f].threads) {
            continue;
        }
        program[f] = fork();
        EXPECT(program[f] >= 0, "fork failed");
        if (program[f] == 0) {
            filter_enter(&filters[f].filter, false);
            execv(arguments[1], arguments + 1);
            _exit(127);
        }
    }
    for (size_t f = 0; f < FILTERS; f++) {
        int status = 0;
        if (program[f] == 0) {
            continue;
        }
        EXPECT(waitpid(program[f], &status, 0) == program[f], "waitpid failed");
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_SKIPPED) {
            skipped++;
        } else if (status != 0) {
            fprintf(stderr, "FAILED where %s is refused: %s %d\n", filters[f].name,
                    WIFSIGNALED(status) ? "ended by signal" : "exit status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            failures++;
        } else {
            held++;
        }
    }
    if (failures == 0 && skipped > 0) {
        expect_skip("%zu of %d filters could not be tried", skipped, FILTERS);
    }
    printf("%zu filters, %zu failed\n", held + failures, failures);
    return failures == 0 ? 0 : 1;
}
