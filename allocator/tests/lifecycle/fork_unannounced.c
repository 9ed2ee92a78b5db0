/* A process copied without fork: by _Fork, or by the system call itself, from a program whose threads are in the
 * middle of malloc and free. No handler runs, so nobody waits for them to come out: the child inherits whatever was
 * half done. It can allocate, sees the parent's blocks unchanged, frees those it owns, and ends; the parent goes on
 * unharmed.
 *
 *   fork_unannounced call|_Fork|nested FORKS|soak      nested: and the child forks in turn, as programs do */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "soak.h"

enum { THREADS = 8, OF_THREAD = 200, KEPT = 200, PATIENCE_SECONDS = 20 };

#pragma weak _Fork
extern pid_t _Fork(void); /* since glibc 2.34 and musl 1.2.2 */

static atomic_bool done;
static unsigned char *kept[KEPT];

static size_t size_of(size_t i) { return 1 + i * 67 % 6000; }

/* Whole magazines back and forth, so that some thread nearly always holds a lock; spans and trims now and then. */
static void *churn(void *argument) {
    uint64_t random = (uintptr_t)argument;
    void *block[OF_THREAD] = {NULL};
    while (!atomic_load_explicit(&done, memory_order_relaxed)) {
        size_t bits = 4 + pattern_below(&random, 14);
        for (size_t b = 0; b < OF_THREAD; b++) {
            free(block[b]);
            block[b] = malloc(((size_t)1 << bits) - b % 3);
            EXPECT(block[b] != NULL, "malloc failed");
            *(char *)block[b] = 1;
        }
        if (pattern_below(&random, 100) == 0) {
            (void)freestone_purge();
        }
    }
    for (size_t b = 0; b < OF_THREAD; b++) {
        free(block[b]);
    }
    return NULL;
}

static void await(pid_t process, const char *whose, size_t number) {
    int status = 0;
    EXPECT(waitpid(process, &status, 0) == process, "waitpid failed");
    EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "%s %zu hangs", whose, number);
    EXPECT(status == 0, "%s %zu ended with status 0x%x", whose, number, (unsigned)status);
}

static void use_heap(uint64_t random) {
    void *block[300];
    for (size_t i = 0; i < 300; i++) {
        size_t size = 1 + pattern_below(&random, (size_t)1 << (4 + pattern_below(&random, i % 30 == 0 ? 18 : 11)));
        block[i] = calloc(1, size);
        EXPECT(block[i] != NULL && pattern_not_zero(block[i], size) == SIZE_MAX, "calloc(%zu) fails in the child",
               size);
        memset(block[i], 1, size);
    }
    for (size_t i = 0; i < 300; i++) {
        free(block[i]);
    }
}

static void child(size_t number, bool nested) {
    alarm(PATIENCE_SECONDS);
    use_heap(number);
    for (size_t i = 0; i < KEPT; i++) {
        EXPECT(pattern_mismatch(kept[i], size_of(i), i) == SIZE_MAX, "block %zu changed in the child", i);
        free(kept[i]);
    }
    (void)freestone_purge();
    if (nested) {
        pid_t grandchild = fork();
        EXPECT(grandchild >= 0, "fork failed in the child");
        if (grandchild == 0) {
            alarm(PATIENCE_SECONDS);
            use_heap(number + 1);
            _exit(0);
        }
        await(grandchild, "grandchild", number);
    }
    _exit(0);
}

static pid_t copy(bool by_libc) { return by_libc ? _Fork() : (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L); }

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 3, "usage: fork_unannounced call|_Fork|nested FORKS|soak");
    bool by_libc = strcmp(arguments[1], "call") != 0, nested = strcmp(arguments[1], "nested") == 0;
    if (by_libc && _Fork == NULL) {
        expect_skip("this libc has no _Fork");
    }
    for (size_t i = 0; i < KEPT; i++) {
        kept[i] = malloc(size_of(i));
        EXPECT(kept[i] != NULL, "malloc failed");
        pattern_fill(kept[i], 0, size_of(i), i);
    }
    pthread_t thread[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&thread[t], NULL, churn, (void *)(t + 1)) == 0, "no thread");
    }
    struct soak soak = soak_begin(arguments[2]);
    size_t forks = 0;
    for (; soak_goes_on(&soak, forks); forks++) {
        pid_t process = copy(by_libc);
        EXPECT(process >= 0, "no process");
        if (process == 0) {
            child(forks, nested);
        }
        free(unseen(malloc(forks)));
        await(process, "child", forks);
    }
    atomic_store(&done, true);
    for (size_t t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
    }
    for (size_t i = 0; i < KEPT; i++) {
        EXPECT(pattern_mismatch(kept[i], size_of(i), i) == SIZE_MAX, "block %zu changed in the parent", i);
        free(kept[i]);
    }
    printf("%zu forks\n", forks);
    return 0;
}
