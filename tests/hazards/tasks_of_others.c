/* Threads that an allocator starts by itself have nothing of the thread that happened to make it start them: not the CPU it is
 * bound to, nor its nice value or class, nor a user that the program has given up; and a program of one thread that forks has one.
 */
#include "hazard.h"

#include <sched.h>
#include <sys/resource.h>

enum { SPANS = 8, SPAN = 64 << 20 };

static cpu_set_t at_start;

static void let_them_start(void) {
    for (int i = 0; i < SPANS; i++) {
        free(touched(SPAN));
    }
    static void *block[100000];
    for (size_t i = 0; i < 100000; i++) {
        block[i] = touched(400);
    }
    for (size_t i = 0; i < 100000; i++) {
        free(block[i]);
    }
    tasks_sleep(300);
}

/* Every task but the first. */
static void look(void) {
    long number[TASKS_MOST];
    char text[TASK_TEXT];
    size_t count = tasks_list(number);
    for (size_t t = 0; t < count; t++) {
        if (number[t] == getpid()) {
            continue;
        }
        cpu_set_t seen;
        EXPECT(sched_getaffinity((pid_t)number[t], sizeof seen, &seen) != 0 || CPU_EQUAL(&seen, &at_start),
               "a thread may run on %d of %d CPUs", CPU_COUNT(&seen), CPU_COUNT(&at_start));
        EXPECT(getpriority(PRIO_PROCESS, (id_t)number[t]) == 0, "a thread has the nice value of who started it");
        EXPECT(sched_getscheduler((pid_t)number[t]) <= SCHED_OTHER, "a thread has the class of who started it");
        const char *users = task_read(number[t], "status", text) ? strstr(text, "\nUid:") : NULL;
        unsigned user = 65534;
        EXPECT(users == NULL || (sscanf(users, "\nUid: %u", &user) == 1 && (geteuid() == 0 || user != 0)),
               "a thread is still root");
    }
}

static void bound_and_nice(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    EXPECT(sched_setaffinity(0, sizeof one, &one) == 0, "it cannot be bound");
    EXPECT(setpriority(PRIO_PROCESS, 0, 7) == 0, "it cannot be nice");
    let_them_start();
    look();
}

static void another_user(void) {
    let_them_start();
    if (geteuid() == 0) {
        EXPECT(setgid(65534) == 0 && setuid(65534) == 0, "the user cannot be given up");
    }
    look();
}

static void forking(void) {
    let_them_start();
    pid_t child = fork();
    EXPECT(child >= 0, "fork failed");
    size_t threads = tasks_count();
    EXPECT(threads == 1, "%zu threads after a fork", threads);
    if (child == 0) {
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status %#x", (unsigned)status);
}

int main(void) {
    require_serving();
    EXPECT(sched_getaffinity(0, sizeof at_start, &at_start) == 0, "nothing is known of CPUs");
    static void (*const cases[])(void) = {bound_and_nice, another_user, forking};
    for (size_t i = 0; i < 3; i++) {
        int status = in_process(cases[i]);
        if (status != 0) {
            return 1; /* it has said why */
        }
    }
    return 0;
}
