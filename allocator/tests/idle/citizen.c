/* The thread of the library's own is started by whichever thread happens to free enough, and takes nothing from it:
 * not the CPU it is bound to, nor its nice value or class; it keeps no user that the program has given up; and a
 * program of one thread that forks is one of one thread.
 *
 * Each in a process of its own; those that need root are skipped without. */
#include <errno.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "field.h"
#include "serving.h"

static cpu_set_t at_start;

static void wake_keeper(void) {
    field_fill(FIELD_MOST / 2, 160);
    field_thin_out(200);
    EXPECT(tasks_await_keeper(true, 2000), "nobody came");
}

static void bound_to_a_cpu(void) {
    cpu_set_t one, seen;
    if (CPU_COUNT(&at_start) < 2) {
        expect_skip("there is one CPU");
    }
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    EXPECT(sched_setaffinity(0, sizeof one, &one) == 0, "errno %d", errno);
    wake_keeper();
    EXPECT(sched_getaffinity((pid_t)tasks_keeper(), sizeof seen, &seen) == 0, "errno %d", errno);
    EXPECT(CPU_EQUAL(&seen, &at_start), "it may run on %d of %d CPUs", CPU_COUNT(&seen), CPU_COUNT(&at_start));
}

static void of_another_class(int policy) {
    struct sched_param parameter = {.sched_priority = sched_get_priority_min(policy)};
    if (sched_setscheduler(0, policy, &parameter) != 0) {
        expect_skip("the class may not be chosen here (errno %d)", errno);
    }
    wake_keeper();
    int seen = sched_getscheduler((pid_t)tasks_keeper());
    EXPECT(seen == SCHED_OTHER, "it runs under policy %d, of whoever started it", seen);
}

static void in_real_time(void) { of_another_class(SCHED_FIFO); }

static void in_batch(void) { of_another_class(SCHED_BATCH); }

static void nice_to_others(void) {
    if (geteuid() != 0) {
        expect_skip("without root nobody may take back a nice value");
    }
    EXPECT(setpriority(PRIO_PROCESS, 0, 7) == 0, "errno %d", errno);
    wake_keeper();
    int seen = getpriority(PRIO_PROCESS, (id_t)tasks_keeper());
    EXPECT(seen == 0, "its nice value is %d, of whoever started it", seen);
}

/* No way leads back to the user that was given up, as the program believes. */
static void of_another_user(void) {
    if (geteuid() != 0) {
        expect_skip("only root may change its user");
    }
    if (getauxval(AT_BASE) == 0) { /* no dynamic linker: libc's setuid cannot be stood before */
        expect_skip("in a static program the library does not hear of it (docs/reference/limits.md)");
    }
    wake_keeper();
    EXPECT(setgid(65534) == 0 && setuid(65534) == 0, "errno %d", errno);
    long number[TASKS_MOST];
    char text[TASK_TEXT];
    size_t count = tasks_list(number);
    for (size_t t = 0; t < count; t++) {
        if (!task_read(number[t], "status", text)) {
            continue; /* it has ended */
        }
        const char *users = strstr(text, "\nUid:");
        unsigned real = 0, effective = 0, saved = 0;
        EXPECT(users != NULL && sscanf(users, "\nUid: %u %u %u", &real, &effective, &saved) == 3, "no users");
        EXPECT(real == 65534 && effective == 65534 && saved == 65534, "a thread is still user %u, %u, %u", real,
               effective, saved);
    }
    field_check("as another user");
}

/* As CPython counts them when os.fork() has returned, to warn of it. */
static void forking(void) {
    for (int round = 0; round < 4; round++) {
        wake_keeper();
        pid_t child = fork();
        EXPECT(child >= 0, "no child");
        size_t threads = tasks_count();
        EXPECT(threads == 1, "%zu threads after a fork, on %s side", threads,
               child == 0 ? "the child's" : "the parent's");
        field_check("after a fork");
        field_clear();
        if (child == 0) {
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status %#x", (unsigned)status);
    }
    wake_keeper(); /* and it comes back */
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"bound_to_a_cpu", bound_to_a_cpu}, {"in_real_time", in_real_time},       {"in_batch", in_batch},
    {"nice_to_others", nice_to_others}, {"of_another_user", of_another_user}, {"forking", forking},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

int main(void) {
    require_serving();
    EXPECT(sched_getaffinity(0, sizeof at_start, &at_start) == 0, "errno %d", errno);
    int failures = 0;
    for (size_t s = 0; s < SCENARIOS; s++) {
        pid_t process = fork();
        EXPECT(process >= 0, "fork failed");
        if (process == 0) {
            scenarios[s].run();
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(process, &status, 0) == process, "waitpid failed");
        bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_SKIPPED;
        printf("%s: %s\n", scenarios[s].name, status == 0 ? "holds" : skipped ? "skipped" : "FAILED");
        failures += status != 0 && !skipped;
    }
    return failures == 0 ? 0 : 1;
}
