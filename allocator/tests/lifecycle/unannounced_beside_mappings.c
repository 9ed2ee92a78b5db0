/* A process copied by _Fork from a program whose threads map and unmap blocks of their own mapping: the table of those is as one of them left it.
 * The child asks for the size of one, grows it, frees it and goes on, at once: nobody waits for threads that are not there. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { THREADS = 2, KEPT = 300, CHILDREN = 400, SECONDS = 4, PATIENCE_SECONDS = 5, MEBIBYTE = 1 << 20 };

#define BLOCK_BYTES ((size_t)130 * MEBIBYTE) /* more than a span holds */

#pragma weak _Fork
extern pid_t _Fork(void); /* since glibc 2.34 and musl 1.2.2 */

static atomic_bool done;
static char *kept[KEPT];

static void *churn(void *argument) {
    while (!atomic_load_explicit(&done, memory_order_relaxed)) {
        free(unseen(malloc(BLOCK_BYTES)));
    }
    return argument;
}

static time_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Who sleeps gives up the CPU by himself, each time. */
static long sleeps(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

static void child(int number) {
    enum { SLEEPS_MOST = 50 }; /* the kernel's own, for its locks; one nap of a millisecond is one */
    alarm(PATIENCE_SECONDS);
    long before = sleeps();
    char *block = kept[number % 2 == 0 ? 0 : number % KEPT];
    size_t usable = malloc_usable_size(block);
    EXPECT(usable >= BLOCK_BYTES, "%zu bytes of a block of %zu", usable, BLOCK_BYTES);
    if (number % 20 == 3) { /* copied */
        block = realloc(block, BLOCK_BYTES + MEBIBYTE);
        EXPECT(block != NULL && *block == 1, "a block that grows in the child is lost");
    }
    free(block);
    long slept = sleeps() - before;
    EXPECT(slept < SLEEPS_MOST, "it slept %ld times", slept);
    _exit(0);
}

int main(void) {
    require_serving();
    if (_Fork == NULL) {
        expect_skip("this libc has no _Fork");
    }
    for (size_t i = 0; i < KEPT; i++) {
        kept[i] = malloc(BLOCK_BYTES);
        if (kept[i] == NULL) {
            expect_skip("no address space for %d blocks of 130 MiB", KEPT);
        }
        *kept[i] = 1;
    }
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&thread[t], NULL, churn, NULL) == 0, "no thread");
    }
    time_t end = seconds() + SECONDS;
    int forks = 0;
    for (; forks < CHILDREN && seconds() < end; forks++) {
        pid_t process = _Fork();
        EXPECT(process >= 0, "no process");
        if (process == 0) {
            child(forks);
        }
        int status = 0;
        EXPECT(waitpid(process, &status, 0) == process, "waitpid failed");
        EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "child %d hangs", forks);
        EXPECT(status == 0, "child %d ended with status 0x%x", forks, (unsigned)status);
    }
    atomic_store(&done, true);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
    }
    printf("%d children\n", forks);
    return 0;
}
