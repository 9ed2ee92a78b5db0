/* refusals LIBRARY CALL sample|soak PROGRAM [ARGUMENT ...]: runs the program over and over while the kernel refuses the
 * library's n-th call of one kind (CALL, or in a sample of each in turn: all), or all from the n-th on, until the
 * program says that it is enough. A sample: n = 1, 4, 16, ... in both ways, and between two of those, while that leaves
 * any, one at random in one of the two. Soaking: each n in both ways, in random order, over and over until the time is
 * over. FREESTONE_SEED plays the same n again. A call of the library's that is in no row fails the test.
 *
 * Several at the same time: what they mostly do is sleep. */
#include <errno.h>
#include <libgen.h>
#include <linux/futex.h>
#include <sys/wait.h>
#include <time.h>

#include "expect.h"
#include "pattern.h"
#include "refused_run.h"
#include "soak.h"
#include "traced.h"

enum { AT_ONCE = 8 };

static const struct {
    const char *name;
    long number;
    int errors[3]; /* in turn */
    bool made; /* a run without such a call tests nothing */
} kinds[] = {
    {"mmap", SYS_mmap, {ENOMEM, ENOMEM, ENOMEM}, true},
    {"munmap", SYS_munmap, {ENOMEM, ENOMEM, ENOMEM}, true},
    {"mremap", SYS_mremap, {ENOMEM, ENOMEM, EAGAIN}, false}, /* threads of the program call it through libc */
    {"mprotect", SYS_mprotect, {ENOMEM, ENOMEM, ENOMEM}, true},
    {"madvise", SYS_madvise, {EINVAL, EAGAIN, ENOMEM}, true},
    {"clone", SYS_clone, {EAGAIN, EAGAIN, EPERM}, true},
    {"futex", SYS_futex, {EINTR, EAGAIN, EINTR}, true},
    {"openat", SYS_openat, {EMFILE, ENOENT, EACCES}, true},
    {"read", SYS_read, {EIO, EINTR, EACCES}, true},
    {"close", SYS_close, {EIO, EINTR, EIO}, true},
    {"rt_sigprocmask", SYS_rt_sigprocmask, {EPERM, EINVAL, ENOSYS}, true},
    {"prctl", SYS_prctl, {EPERM, EINVAL, ENOSYS}, true},
    {"capget", SYS_capget, {EPERM, EINVAL, ENOSYS}, true},
    {"getresuid", SYS_getresuid, {EPERM, EFAULT, ENOSYS}, true},
    {"getresgid", SYS_getresgid, {EPERM, EFAULT, ENOSYS}, true},
    {"capset", SYS_capset, {EPERM, EPERM, ENOSYS}, true},
    {"sched_getaffinity", SYS_sched_getaffinity, {EPERM, EINVAL, ENOSYS}, false},
    {"sched_setaffinity", SYS_sched_setaffinity, {EPERM, EINVAL, ENOSYS}, true},
    {"sched_setscheduler", SYS_sched_setscheduler, {EPERM, EINVAL, ENOSYS}, true},
    {"prlimit64", SYS_prlimit64, {EPERM, EINVAL, ENOSYS}, true},
    {"setpriority", SYS_setpriority, {EPERM, EACCES, ENOSYS}, true},
    {"mincore", SYS_mincore, {EAGAIN, EFAULT, ENOSYS}, false}, /* if huge pages are to be had */
    {"getrandom", SYS_getrandom, {EAGAIN, EINTR, ENOSYS}, false}, /* under harden=1 and guard=1 */
};

enum { KINDS = sizeof kinds / sizeof *kinds };

struct refusal {
    struct trace trace; /* first: what the decision is given */
    size_t kind;
    size_t from, to; /* calls from..to are refused, counted from 1 */
    bool over;
    size_t seen[KINDS];
};

/* A wake that is not made is one that the sleeper waits for in vain; nothing can be done about that. */
static size_t kind_of(const struct traced_call *call) {
    for (size_t k = 0; k < KINDS; k++) {
        if (call->number == kinds[k].number) {
            bool wakes = call->number == SYS_futex && ((int)call->arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAKE;
            return wakes ? KINDS : k;
        }
    }
    /* What these ask has an answer. */
    bool no_refusal = call->number == SYS_getpid || call->number == SYS_gettid || call->number == SYS_tgkill ||
                      call->number == SYS_clock_gettime; /* if the table of the vDSO cannot be written */
    EXPECT(no_refusal || (call->number == SYS_exit && call->keeper),
           "the library makes system call %ld, which is in no row", call->number);
    return KINDS;
}

static int decide(struct trace *trace, const struct traced_call *call) {
    struct refusal *refusal = (struct refusal *)trace;
    size_t kind = kind_of(call);
    if (kind == KINDS) {
        return 0;
    }
    size_t n = ++refusal->seen[kind];
    bool refused = kind == refusal->kind && !refusal->over && n >= refusal->from && n <= refusal->to;
    return refused ? kinds[kind].errors[n % 3] : 0;
}

static void hear(struct trace *trace, long word) {
    struct refusal *refusal = (struct refusal *)trace;
    refusal->over |= word == REFUSED_RUN_ENOUGH;
}

/* Ends this process with 0 when all was well. A library that could not ask whether filters watch starts no keeper. */
static void run_once(struct refusal *refusal, char **command) {
    char *kept[] = {command[0], "kept", NULL};
    long number = kinds[refusal->kind].number;
    int status = traced_run(&refusal->trace, number == SYS_openat || number == SYS_read ? kept : command);
    if (WIFEXITED(status)) {
        _exit(WEXITSTATUS(status));
    }
    fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    _exit(1);
}

static struct {
    pid_t process;
    size_t kind, from, to;
} running[AT_ONCE];

static size_t next_place, runs, failures;

static void await(size_t place) {
    int status = 0;
    if (running[place].process == 0) {
        return;
    }
    EXPECT(waitpid(running[place].process, &status, 0) == running[place].process, "waitpid failed");
    running[place].process = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_SKIPPED) {
        _exit(EXPECT_SKIPPED);
    }
    if (status != 0) {
        fprintf(stderr, "FAILED with %s refused at call %zu%s\n", kinds[running[place].kind].name, running[place].from,
                running[place].from == running[place].to ? "" : " and all that follow");
        failures++;
    }
}

static void run(const struct trace *trace, size_t kind, size_t from, size_t to, char **command) {
    await(next_place);
    runs++;
    running[next_place].kind = kind;
    running[next_place].from = from;
    running[next_place].to = to;
    running[next_place].process = fork();
    EXPECT(running[next_place].process >= 0, "fork failed");
    if (running[next_place].process == 0) {
        struct refusal refusal = {.trace = *trace, .kind = kind, .from = from, .to = to};
        run_once(&refusal, command);
    }
    next_place = (next_place + 1) % AT_ONCE;
}

/* 1, 4, 16, ... and one at random between each two. */
static void sample(const struct trace *trace, size_t kind, size_t calls, uint64_t *random, char **command) {
    for (size_t n = 1; n <= calls; n *= 4) {
        run(trace, kind, n, n, command);
        run(trace, kind, n, SIZE_MAX, command);
        size_t between = (4 * n <= calls ? 4 * n : calls + 1) - n - 1;
        if (between > 0) {
            size_t chosen = n + 1 + pattern_below(random, between);
            run(trace, kind, chosen, pattern_below(random, 2) == 0 ? chosen : SIZE_MAX, command);
        }
    }
}

/* Every n in both ways, in random order; false when the time is over before. */
static bool sweep(const struct trace *trace, size_t kind, size_t calls, uint64_t *random, const struct soak *soak,
                  char **command) {
    size_t left = 2 * calls;
    size_t *order = malloc(left * sizeof *order);
    EXPECT(order != NULL, "no memory");
    for (size_t i = 0; i < left; i++) {
        order[i] = i;
    }
    for (; left > 0 && (runs == 0 || soak_goes_on(soak, runs)); left--) {
        size_t chosen = pattern_below(random, left), n = 1 + order[chosen] / 2;
        run(trace, kind, n, order[chosen] % 2 == 0 ? n : SIZE_MAX, command);
        order[chosen] = order[left - 1];
    }
    free(order);
    return left == 0;
}

static uint64_t chosen_seed(void) {
    const char *given = getenv("FREESTONE_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return given != NULL ? strtoull(given, NULL, 10) : (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int main(int count, char **arguments) {
    EXPECT(count >= 5, "usage: refusals LIBRARY CALL sample|soak PROGRAM [ARGUMENT ...]");
    bool each = strcmp(arguments[2], "all") == 0, any = false;
    EXPECT(!each || !soak_wanted(arguments[3]), "soaking takes one kind of call");
    struct soak soak = soak_begin(arguments[3]);
    char **command = arguments + 4;
    uint64_t random = chosen_seed();
    printf("FREESTONE_SEED=%llu\n", (unsigned long long)random);
    (void)fflush(stdout); /* before there are children to print it again */
    struct refusal none = {.trace = {decide, hear, basename(arguments[1])}, .kind = KINDS};
    int status = traced_run(&none.trace, command);
    EXPECT(status == 0, "the run fails when nothing is refused: wait status %#x", (unsigned)status);
    for (size_t k = 0; k < KINDS; k++) {
        if (!each && strcmp(arguments[2], kinds[k].name) != 0) {
            continue;
        }
        any = true;
        printf("%s: %zu calls\n", kinds[k].name, none.seen[k]);
        EXPECT(none.seen[k] > 0 || !kinds[k].made, "the run makes no call of %s", kinds[k].name);
        if (!soak_wanted(arguments[3])) {
            sample(&none.trace, k, none.seen[k], &random, command);
            continue;
        }
        while (none.seen[k] > 0 && sweep(&none.trace, k, none.seen[k], &random, &soak, command)) {
        }
    }
    EXPECT(any, "'%s' is no call that can be refused", arguments[2]);
    for (size_t p = 0; p < AT_ONCE; p++) {
        await(p);
    }
    printf("%zu runs, %zu failed\n", runs, failures);
    return failures == 0 ? 0 : 1;
}
