/* A program that starts freely and then locks itself up: every system call is death but those of an allocator, those
 * by which it sleeps, writes and ends, and a look at one's own state. It lives, before the library has a thread of
 * its own, beside one, and among threads of the program; whether the filter is for all threads, or for the one that
 * sets it and what it starts.
 *
 *   late_filter [before_keeper|beside_keeper|among_threads all|itself]      without: each, at the same time */
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "../faults/filter.h"
#include "../idle/field.h"
#include "churn.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

extern char **environ;

enum { THREADS = 3, STEPS = 20000, LOOKS_MS = 900 };

static const long known[] = {
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_mprotect,
    SYS_futex,
    SYS_sched_getaffinity,
    SYS_write,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_exit,
    /* the library's look at /proc/self/status, and the test's at its threads */
    SYS_openat,
    SYS_read,
    SYS_close,
    SYS_getdents64,
#ifdef SYS_open
    SYS_open, /* musl's open */
#endif
    SYS_fcntl,
    SYS_brk,
    SYS_getrandom, /* other allocators' */
};

static const struct filter filter = {known, sizeof known / sizeof *known, true, FILTER_KILLS};
static atomic_bool done;
static pthread_barrier_t together;

static void work(uint64_t random) {
    struct churn churn = {.random = random, .most_bits = 28};
    for (size_t i = 0; i < STEPS; i++) {
        churn_step(&churn);
        if (i % 5000 == 0) {
            (void)freestone_purge();
        }
    }
    churn_end(&churn);
}

/* Frees much, and leaves time for whoever would like to return it. */
static void free_much(void) {
    field_fill(FIELD_MOST / 4, 160);
    field_thin_out(200);
    for (long end = tasks_clock() + LOOKS_MS; tasks_clock() < end; tasks_sleep(50)) {
        free(unseen(malloc(1 << 20)));
    }
    field_check("in the filter");
    field_clear();
}

static void *in_thread(void *argument) {
    work((uintptr_t)argument);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together); /* the filter is there, for this thread or for another */
    work((uintptr_t)argument + 10);
    while (!atomic_load(&done)) {
        free(unseen(malloc(300)));
        tasks_sleep(10);
    }
    pthread_barrier_wait(&together); /* a thread's end takes calls of libc's own */
    pthread_barrier_wait(&together);
    return NULL;
}

static int run_all(void) {
    static char *const when[] = {"before_keeper", "beside_keeper", "among_threads"}, *const whose[] = {"all", "itself"};
    enum { RUNS = 6 };
    pid_t process[RUNS];
    int failures = 0, skipped = 0;
    for (size_t r = 0; r < RUNS; r++) {
        char *command[] = {"late_filter", when[r / 2], whose[r % 2], NULL};
        EXPECT(posix_spawn(&process[r], "/proc/self/exe", NULL, NULL, command, environ) == 0, "posix_spawn failed");
    }
    for (size_t r = 0; r < RUNS; r++) {
        int status = 0;
        EXPECT(waitpid(process[r], &status, 0) == process[r], "waitpid failed");
        bool skips = WIFEXITED(status) && WEXITSTATUS(status) == EXPECT_SKIPPED;
        printf("%s, %s: %s\n", when[r / 2], whose[r % 2], status == 0 ? "holds" : skips ? "skipped" : "FAILED");
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
    EXPECT(count == 3, "usage: late_filter [before_keeper|beside_keeper|among_threads all|itself]");
    bool threads = strcmp(arguments[1], "among_threads") == 0;
    bool beside = strcmp(arguments[1], "beside_keeper") == 0;
    free(unseen(malloc(1)));
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (uintptr_t t = 0; threads && t < THREADS; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, in_thread, (void *)(t + 2)) == 0, "no thread");
    }
    if (threads) {
        pthread_barrier_wait(&together);
    }
    if (beside) {
        field_wake_keeper();
    }
    filter_enter(&filter, strcmp(arguments[2], "all") == 0);
    if (threads) {
        pthread_barrier_wait(&together);
    }
    if (beside) {
        tasks_sleep(LOOKS_MS);
        field_check("beside the keeper");
        field_clear();
    }
    work(1);
    free_much();
    if (threads || beside) {
        free_much();
    } else {
        EXPECT(tasks_count() == 1, "%zu threads in a filter that knows no clone", tasks_count());
    }
    atomic_store(&done, true);
    if (threads) {
        pthread_barrier_wait(&together);
    }
    _exit(0);
}
