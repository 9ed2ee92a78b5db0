/* fork from a program whose many threads are all in the middle of malloc and free: every child can allocate, sees its
 * parent's blocks unchanged, frees them, forks again, and exits with all its exit functions.
 *
 *   fork_under_load THREADS FORKS|soak */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "soak.h"

enum {
    THREADS_MOST = 64,
    INHERITED = 500,
    OF_THREAD = 100,
    /* A child that waits for a lock waits for ever: what stops it only has to be far beyond any load. */
    PATIENCE_SECONDS = 90,
};

static atomic_bool done;
static void *inherited[INHERITED];

static size_t size_of(size_t i) { return 1 + i * 67 % 9000; }

static void *churn(void *argument) {
    uint64_t random = (uintptr_t)argument;
    void *blocks[OF_THREAD] = {NULL};
    while (!atomic_load_explicit(&done, memory_order_relaxed)) {
        size_t b = pattern_below(&random, OF_THREAD);
        free(blocks[b]);
        size_t bits = 4 + pattern_below(&random, pattern_below(&random, 50) == 0 ? 16 : 8);
        blocks[b] = malloc((size_t)1 << bits);
        EXPECT(blocks[b] != NULL, "malloc failed");
        memset(blocks[b], 1, 16);
        if (pattern_below(&random, 5000) == 0) {
            (void)freestone_purge();
        }
    }
    for (size_t b = 0; b < OF_THREAD; b++) {
        free(blocks[b]);
    }
    return NULL;
}

static void *in_child_thread(void *unused) {
    (void)unused;
    for (size_t i = 0; i < 200; i++) {
        free(unseen(malloc(size_of(i))));
    }
    return NULL;
}

static void wait_for(pid_t child, const char *whose) {
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child, "waitpid failed");
    EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "the %s hangs", whose);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the %s ended with status 0x%x", whose, (unsigned)status);
}

static void allocate_some(uint64_t seed) {
    void *blocks[300];
    for (size_t i = 0; i < 300; i++) {
        size_t size = 1 + pattern_below(&seed, (size_t)1 << (4 + pattern_below(&seed, 15)));
        blocks[i] = calloc(1, size);
        EXPECT(blocks[i] != NULL && pattern_not_zero(blocks[i], size) == SIZE_MAX, "calloc fails after fork");
        memset(blocks[i], 1, size);
    }
    for (size_t i = 0; i < 300; i++) {
        free(blocks[i]);
    }
}

static void child(size_t number) {
    alarm(PATIENCE_SECONDS);
    for (size_t i = 0; i < INHERITED; i++) {
        EXPECT(pattern_mismatch(inherited[i], size_of(i), i) == SIZE_MAX, "block %zu changed in the child", i);
        if (i % 2 == number % 2) {
            free(inherited[i]);
            inherited[i] = NULL;
        }
    }
    allocate_some(number);
    (void)freestone_purge();
    if (number % 4 == 0) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, in_child_thread, NULL) == 0, "no thread in the child");
        pthread_join(thread, NULL);
    }
    if (number % 3 == 0) {
        pid_t grandchild = fork();
        EXPECT(grandchild >= 0, "fork failed in the child");
        if (grandchild == 0) {
            alarm(PATIENCE_SECONDS);
            allocate_some(number + 1);
            _exit(0);
        }
        wait_for(grandchild, "grandchild");
    }
    if (number % 2 == 0) {
        exit(0); /* exit functions and destructors, which allocate and free too */
    }
    _exit(0);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 3, "usage: fork_under_load THREADS FORKS|soak");
    size_t threads = strtoul(arguments[1], NULL, 10);
    struct soak soak = soak_begin(arguments[2]);
    EXPECT(threads <= THREADS_MOST, "THREADS is at most %d", THREADS_MOST);
    for (size_t i = 0; i < INHERITED; i++) {
        inherited[i] = malloc(size_of(i));
        EXPECT(inherited[i] != NULL, "malloc failed");
        pattern_fill(inherited[i], 0, size_of(i), i);
    }
    pthread_t running[THREADS_MOST];
    for (uintptr_t t = 0; t < threads; t++) {
        EXPECT(pthread_create(&running[t], NULL, churn, (void *)(t + 1)) == 0, "no thread");
    }
    for (size_t f = 0; soak_goes_on(&soak, f); f++) {
        pid_t pid = fork();
        EXPECT(pid >= 0, "fork failed");
        if (pid == 0) {
            child(f);
        }
        wait_for(pid, "child");
    }
    atomic_store(&done, true);
    for (size_t t = 0; t < threads; t++) {
        pthread_join(running[t], NULL);
    }
    for (size_t i = 0; i < INHERITED; i++) {
        EXPECT(pattern_mismatch(inherited[i], size_of(i), i) == SIZE_MAX, "block %zu changed in the parent", i);
        free(inherited[i]);
    }
    return 0;
}
