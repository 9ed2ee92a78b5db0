/* Memory that lies free goes back to the kernel while the program sleeps: by a thread of the library's own, which exists
 * only as long as there is something to return, gets no signals, and is in nobody's way when the program forks, starts
 * other programs, changes its user, ends.
 *
 *   idle_return [SCENARIO]   without one: all of them, each a process of its own, at the same time */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "field.h"
#include "serving.h"

extern char **environ;

/* -- what comes back ------------------------------------------------------------------------------------------- */

static void scattered(void) {
    field_fill(FIELD_MOST, 160);
    field_thin_out(200);
    field_await_return(field.before_kib, field.full_kib, 70);
    field_check("after idling");
    EXPECT(tasks_await_keeper(false, IDLE_MS), "the keeper does not end");
    EXPECT(tasks_count() == 1, "%zu threads", tasks_count());
    field_check("after the keeper");
    field_clear();
    field_wake_keeper(); /* and another life */
    field_check("in the keeper's second life");
}

enum { SLEEPERS = 32 };

static atomic_uint asleep;

static void *thin_out_and_sleep(void *argument) {
    for (size_t i = (uintptr_t)argument; i < field.count; i += SLEEPERS) {
        uint32_t chosen = field.order[i];
        if (chosen % 200 != 0) {
            free(field.block[chosen]);
            field.block[chosen] = NULL;
        }
    }
    atomic_fetch_add(&asleep, 1);
    for (;;) {
        pause();
    }
    return NULL;
}

/* The last of what each thread frees is on its way to another's heap when the thread goes to sleep for ever: so little, and
 * so many pages of which it is all. */
static void freed_by_sleepers(void) {
    pthread_t thread;
    field_fill(FIELD_MOST, 160);
    for (uintptr_t i = 0; i < SLEEPERS; i++) {
        EXPECT(pthread_create(&thread, NULL, thin_out_and_sleep, (void *)i) == 0, "no thread");
    }
    while (atomic_load(&asleep) < SLEEPERS) {
        tasks_sleep(5);
    }
    field_await_return(field.before_kib, field.full_kib, 70);
    field_check("after idling");
    EXPECT(tasks_await_keeper(false, IDLE_MS), "the keeper does not end");
}

static void large_blocks(void) {
    static const size_t sizes[] = {300000, 1 << 20, 5 << 20, 9 << 20};
    void *block[48];
    size_t before = resident_kib();
    for (size_t i = 0; i < 48; i++) {
        size_t size = sizes[i % (i < 12 ? 4 : 2)];
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "malloc(%zu) failed", size);
        pattern_fill(block[i], 0, size, i);
    }
    size_t full = resident_kib();
    for (size_t i = 0; i < 48; i++) {
        if (i % 16 != 0) {
            free(block[i]);
        }
    }
    field_await_return(before, full, 70);
    for (size_t i = 0; i < 48; i += 16) {
        EXPECT(pattern_mismatch(block[i], sizes[0], i) == SIZE_MAX, "block %zu has changed", i);
    }
    EXPECT(tasks_await_keeper(false, IDLE_MS), "the keeper does not end");
}

/* Of every class a megabyte; one block stays in about 64 KiB. */
static void many_classes(void) {
    enum { CLASSES = 56, EACH = 1 << 20 };
    static void *block[CLASSES][EACH / 16];
    static size_t size[CLASSES];
    size_t classes = 0;
    for (size_t step = 16; step <= 128; step += 16) {
        size[classes++] = step;
    }
    for (size_t doubling = 128; doubling < 256 * 1024; doubling *= 2) {
        for (size_t quarter = 1; quarter <= 4; quarter++) {
            size[classes++] = doubling + doubling * quarter / 4;
        }
    }
    size_t before = resident_kib();
    for (size_t c = 0; c < classes; c++) {
        for (size_t i = 0; i < EACH / size[c]; i++) {
            block[c][i] = malloc(size[c]);
            EXPECT(block[c][i] != NULL, "malloc(%zu) failed", size[c]);
            pattern_fill(block[c][i], 0, size[c], c * EACH + i);
        }
    }
    size_t full = resident_kib() - (size_t)(EACH / 16 / 512) * 4; /* less a page or two of the list itself */
    for (size_t c = 0; c < classes; c++) {
        size_t every = size[c] < 8192 ? 65536 / size[c] : 8;
        for (size_t i = 0; i < EACH / size[c]; i++) {
            if (i % every != 0) {
                free(block[c][i]);
                block[c][i] = NULL;
            }
        }
    }
    field_await_return(before, full, 55); /* the list of blocks is a part of what the process has grown by */
    for (size_t c = 0; c < classes; c++) {
        for (size_t i = 0; i < EACH / size[c]; i++) {
            EXPECT(block[c][i] == NULL || pattern_mismatch(block[c][i], size[c], c * EACH + i) == SIZE_MAX,
                   "block %zu of %zu bytes has changed", i, size[c]);
        }
    }
    /* What was purged and what was not comes out of calloc as zero. */
    for (size_t c = 0; c < classes; c++) {
        for (size_t i = 0; i < EACH / size[c]; i += 3) {
            if (block[c][i] == NULL) {
                block[c][i] = calloc(1, size[c]);
                EXPECT(block[c][i] != NULL && pattern_not_zero(block[c][i], size[c]) == SIZE_MAX,
                       "calloc(%zu) is not zero", size[c]);
                memset(block[c][i], 0xff, size[c]);
            }
        }
    }
}

/* -- when there is none ---------------------------------------------------------------------------------------- */

/* A block of every size and none freed: what lies free in their slabs, over 4 MiB, was never anybody's. */
static void never_freed(void) {
    for (size_t bytes = 16; bytes <= 256 * 1024; bytes += bytes < 128 ? 16 : bytes / 4) {
        char *block = malloc(bytes);
        EXPECT(block != NULL, "malloc(%zu) failed", bytes);
        block[0] = 1;
        EXPECT(tasks_count() == 1, "%zu threads after malloc(%zu), and nothing was freed", tasks_count(), bytes);
    }
}

/* A program that neither holds nor frees much has no thread it did not start. */
static void little(void) {
    static void *block[4000];
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 4000; i++) {
            block[i] = malloc(1 + i % 500);
            EXPECT(block[i] != NULL, "malloc failed");
            memset(block[i], 1, 1 + i % 500);
        }
        free(malloc(1 << 20));
        for (size_t i = 0; i < 4000; i++) {
            free(block[i]);
        }
        EXPECT(tasks_count() == 1, "%zu threads in a small program", tasks_count());
        tasks_sleep(100);
    }
    EXPECT(unshare(CLONE_NEWUSER) == 0 || errno != EINVAL, "the program counts as one of many threads");
}

/* With the option keeper=0, or where the kernel refuses a thread: nothing comes back by itself, all of it when asked. */
static void never(void) {
    field_fill(FIELD_MOST, 160);
    field_thin_out(200);
    for (int look = 0; look < 15; look++) {
        EXPECT(tasks_count() == 1, "%zu threads", tasks_count());
        tasks_sleep(100);
    }
    EXPECT(resident_kib() > field.before_kib + (field.full_kib - field.before_kib) / 2,
           "memory has gone back, and nobody was there to return it");
    field_check("after idling");
    field_clear();
    (void)freestone_purge();
    EXPECT(resident_kib() < field.full_kib / 2, "%zu of %zu KiB after a purge", resident_kib(), field.full_kib);
}

/* Waits for the process to have so many threads: under filters the keeper has no name. */
static bool await_tasks(size_t tasks, long milliseconds) {
    for (long end = tasks_clock() + milliseconds; tasks_count() != tasks && tasks_clock() < end; tasks_sleep(20)) {
    }
    return tasks_count() == tasks;
}

/* Nothing goes back, since the kernel refuses it: whoever tries ends as well, and nothing is lost. */
static void not_returned(void) {
    field_fill(FIELD_MOST / 4, 160);
    void *large[8];
    for (size_t i = 0; i < 8; i++) {
        large[i] = malloc(2 << 20);
        EXPECT(large[i] != NULL, "malloc failed");
        memset(large[i], 1, 2 << 20);
    }
    size_t full = resident_kib();
    for (size_t i = 0; i < 8; i++) {
        free(large[i]);
    }
    field_thin_out(200);
    EXPECT(await_tasks(2, 2000), "nobody has tried");
    EXPECT(await_tasks(1, IDLE_MS), "the keeper goes on trying what cannot be done");
    EXPECT(resident_kib() > full - 8 * 1024, "of %zu KiB %zu are left: the kernel has not refused", full,
           resident_kib());
    field_check("where nothing can be returned");
}

/* Locked memory is not the kernel's to take. */
static void locked(void) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        expect_skip("mlockall is not allowed here (errno %d)", errno);
    }
    not_returned();
}

/* -- in nobody's way ------------------------------------------------------------------------------------------- */

static atomic_long main_task, strays, handled;

static void count_signal(int signal) {
    (void)signal;
    atomic_fetch_add(&handled, 1);
    if (syscall(SYS_gettid) != atomic_load(&main_task)) {
        atomic_fetch_add(&strays, 1);
    }
}

/* While the only thread of the program blocks a signal, the kernel looks for another one to take it. */
static void signals(void) {
    atomic_store(&main_task, syscall(SYS_gettid));
    sigset_t set, pending;
    sigemptyset(&set);
    static const int storm[] = {SIGUSR1, SIGTERM, SIGCHLD, SIGALRM, SIGSEGV};
    for (size_t i = 0; i < sizeof storm / sizeof *storm; i++) {
        sigaddset(&set, storm[i]);
        EXPECT(sigaction(storm[i], &(struct sigaction){.sa_handler = count_signal}, NULL) == 0, "no handler");
    }
    field_wake_keeper();
    char status[TASK_TEXT];
    EXPECT(task_read(tasks_keeper(), "status", status), "the keeper has gone");
    const char *blocked = strstr(status, "SigBlk:");
    uint64_t mask = blocked == NULL ? 0 : strtoull(blocked + strlen("SigBlk:"), NULL, 16);
    /* All but 9 and 19, which nobody can block. */
    EXPECT(mask == (~UINT64_C(0) & ~(UINT64_C(1) << 8) & ~(UINT64_C(1) << 18)), "the keeper blocks %#llx only",
           (unsigned long long)mask);
    for (int round = 0; round < 400; round++) {
        EXPECT(sigprocmask(SIG_BLOCK, &set, NULL) == 0, "cannot block");
        for (size_t i = 0; i < sizeof storm / sizeof *storm; i++) {
            EXPECT(kill(getpid(), storm[i]) == 0, "cannot send");
        }
        if (round % 8 == 0) {
            tasks_sleep(2);
        }
        EXPECT(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1, "somebody has taken the signal");
        EXPECT(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0, "cannot unblock");
    }
    EXPECT(tasks_keeper() != 0, "the keeper was gone before the storm was over");
    EXPECT(atomic_load(&strays) == 0 && atomic_load(&handled) == 2000, "%ld signals, %ld in another thread",
           atomic_load(&handled), atomic_load(&strays));
}

static void await_child(pid_t child, const char *which) {
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child, "%s: no child", which);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: wait status %#x", which, (unsigned)status);
}

/* The child has no keeper, and one of its own when it frees; both see their memory whole and give it back. */
static void forked(void) {
    field_fill(FIELD_MOST / 2, 160);
    size_t before = field.before_kib, full = field.full_kib;
    field_thin_out(2);
    EXPECT(tasks_await_keeper(true, 2000), "nobody came");
    pid_t child = fork();
    EXPECT(child >= 0, "no child");
    if (child == 0) {
        EXPECT(tasks_count() == 1, "the child has %zu threads", tasks_count());
        field_check("in the child");
        size_t here = resident_kib();
        field_thin_out(200);
        EXPECT(tasks_await_keeper(true, 2000), "nobody came in the child");
        field_await_return(here > before ? before : 0, here, 60);
        field_check("in the child after idling");
        _exit(0);
    }
    for (int i = 0; i < 10; i++) { /* at any moment of the keeper's */
        pid_t other = fork();
        if (other == 0) {
            field_check("in another child");
            free(malloc(100));
            _exit(0);
        }
        await_child(other, "another child");
        tasks_sleep(60);
    }
    field_thin_out(200);
    field_await_return(before, full, 70);
    field_check("in the parent");
    await_child(child, "the child");
}

static void spawned(void) {
    char self[] = "/proc/self/exe";
    char *command[] = {(char[]){"idle_return"}, (char[]){"nothing"}, NULL};
    field_wake_keeper();
    for (int i = 0; i < 5; i++) {
        pid_t program;
        EXPECT(posix_spawn(&program, self, NULL, NULL, command, environ) == 0, "posix_spawn failed");
        await_child(program, "posix_spawn");
        program = vfork();
        if (program == 0) {
            execve(self, command, environ);
            _exit(1);
        }
        await_child(program, "vfork");
    }
    EXPECT(tasks_keeper() != 0, "the keeper was gone before the last program was started");
    field_check("after other programs");
    execve(self, command, environ); /* and now instead of this one */
    EXPECT(0, "execve failed");
}

static void nothing(void) { free(unseen(malloc(100))); }

static void *sleep_a_little(void *argument) {
    tasks_sleep(100);
    return argument;
}

/* The ways a process can end: the last thread that libc knows takes the keeper with it. */
static void wake_keeper_to_end(void) {
    alarm(20); /* for a process that does not */
    field_wake_keeper();
}

static void ends_by_exit(void) {
    wake_keeper_to_end();
    exit(0);
}

static void ends_at_once(void) {
    wake_keeper_to_end();
    _exit(0);
}

static void ends_with_its_thread(void) {
    wake_keeper_to_end();
    pthread_exit(NULL);
}

static void ends_with_its_last_thread(void) {
    pthread_t thread;
    wake_keeper_to_end();
    EXPECT(pthread_create(&thread, NULL, sleep_a_little, NULL) == 0, "no thread");
    pthread_exit(NULL);
}

static atomic_int stage;

static void *be_another_user(void *argument) {
    while (atomic_load(&stage) == 0) {
        tasks_sleep(2);
    }
    *(uid_t *)argument = geteuid();
    return NULL;
}

/* libc asks every thread it knows to change its user; it must not wait for one it does not know. */
static void another_user(void) {
    uid_t seen = 0;
    pthread_t thread;
    if (geteuid() != 0) {
        expect_skip("only root may change its user");
    }
    EXPECT(pthread_create(&thread, NULL, be_another_user, &seen) == 0, "no thread");
    field_wake_keeper();
    alarm(20);
    EXPECT(seteuid(65534) == 0 && seteuid(0) == 0, "seteuid: errno %d", errno);
    EXPECT(setgid(65534) == 0 && setuid(65534) == 0, "setuid: errno %d", errno);
    EXPECT(setuid(0) != 0, "the way back is open");
    atomic_store(&stage, 1);
    pthread_join(thread, NULL);
    EXPECT(seen == 65534 && geteuid() == 65534, "users %u and %u", (unsigned)seen, (unsigned)geteuid());
    field_check("as another user");
}

/* -- all of them ----------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
    bool by_name_only;
} scenarios[] = {
    {"scattered", scattered, false},
    {"freed_by_sleepers", freed_by_sleepers, false},
    {"large_blocks", large_blocks, false},
    {"many_classes", many_classes, false},
    {"never_freed", never_freed, false},
    {"little", little, false},
    {"locked", locked, false},
    {"signals", signals, false},
    {"forked", forked, false},
    {"spawned", spawned, false},
    {"ends_by_exit", ends_by_exit, false},
    {"ends_at_once", ends_at_once, false},
    {"ends_with_its_thread", ends_with_its_thread, false},
    {"ends_with_its_last_thread", ends_with_its_last_thread, false},
    {"another_user", another_user, false},
    {"nothing", nothing, true},
    {"never", never, true},
    {"not_returned", not_returned, true},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static int run_all(void) {
    pid_t program[SCENARIOS] = {0};
    int failures = 0;
    for (size_t i = 0; i < SCENARIOS; i++) {
        char *command[] = {(char[]){"idle_return"}, (char *)(uintptr_t)scenarios[i].name, NULL};
        EXPECT(scenarios[i].by_name_only ||
                   posix_spawn(&program[i], "/proc/self/exe", NULL, NULL, command, environ) == 0,
               "posix_spawn failed");
    }
    for (size_t i = 0; i < SCENARIOS; i++) {
        int status = 0;
        if (program[i] == 0) {
            continue;
        }
        EXPECT(waitpid(program[i], &status, 0) == program[i], "waitpid failed");
        bool good = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXPECT_SKIPPED);
        printf("%s: %s\n", scenarios[i].name, good ? status == 0 ? "holds" : "skipped" : "FAILED");
        if (!good) {
            printf("%s ended with wait status %#x\n", scenarios[i].name, (unsigned)status);
            failures++;
        }
    }
    return failures == 0 ? 0 : 1;
}

int main(int count, char **arguments) {
    require_serving();
    for (size_t i = 0; count == 2 && i < SCENARIOS; i++) {
        if (strcmp(arguments[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return 0;
        }
    }
    EXPECT(count == 1, "usage: idle_return [SCENARIO]");
    return run_all();
}
