/* Several threads fork at the same time, while others are born and end, and while handlers are registered to be run
 * around forks, more than any fixed room for them: every child allocates, frees and ends, and every handler that ran
 * before a fork runs after it, on both sides.
 *
 *   forks_at_once SECONDS|soak [HANDLERS] */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "soak.h"

enum { FORKERS = 4, BEARERS = 3, BORN = 4, PATIENCE_SECONDS = 60, FORKS_LEAST = 20 };

static atomic_bool done;
static atomic_size_t forks, births;
/* Of the fork that this thread makes: handlers that have run before it, and not yet after it. */
static _Thread_local long open_handlers;

static void use_heap(uint64_t random) {
    void *block[60];
    for (size_t i = 0; i < 60; i++) {
        size_t size = 1 + pattern_below(&random, (size_t)1 << (4 + pattern_below(&random, 14)));
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "malloc(%zu) failed", size);
        memset(block[i], 1, size);
    }
    for (size_t i = 0; i < 60; i++) {
        free(block[i]);
    }
}

static void before(void) {
    free(unseen(malloc(5000)));
    open_handlers++;
}

static void after(void) {
    free(unseen(calloc(3, 700)));
    open_handlers--;
}

static void *be_born(void *argument) {
    use_heap((uintptr_t)argument);
    return malloc(100); /* freed by another */
}

static void *bear(void *argument) {
    uintptr_t self = (uintptr_t)argument;
    while (!atomic_load(&done)) {
        pthread_t thread[BORN];
        for (uintptr_t t = 0; t < BORN; t++) {
            EXPECT(pthread_create(&thread[t], NULL, be_born, (void *)(self + t)) == 0, "no thread");
        }
        for (size_t t = 0; t < BORN; t++) {
            void *block;
            EXPECT(pthread_join(thread[t], &block) == 0 && block != NULL, "a thread had no block");
            free(block);
        }
        atomic_fetch_add(&births, BORN);
    }
    return NULL;
}

static void child(uint64_t number) {
    alarm(PATIENCE_SECONDS);
    EXPECT(open_handlers == 0, "%ld handlers did not run in the child", open_handlers);
    use_heap(number);
    if (number % 16 == 0) {
        pthread_t thread;
        void *block;
        EXPECT(pthread_create(&thread, NULL, be_born, (void *)(uintptr_t)number) == 0, "no thread in the child");
        pthread_join(thread, &block);
        free(block);
        exit(0);
    }
    _exit(0);
}

static void *fork_on(void *unused) {
    while (!atomic_load(&done)) {
        pid_t process = fork();
        EXPECT(process >= 0, "fork failed");
        if (process == 0) {
            child(atomic_load(&forks));
        }
        EXPECT(open_handlers == 0, "%ld handlers did not run in the parent", open_handlers);
        int status = 0;
        use_heap(1);
        EXPECT(waitpid(process, &status, 0) == process, "waitpid failed");
        EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "a child hangs");
        EXPECT(status == 0, "a child ended with status 0x%x", (unsigned)status);
        atomic_fetch_add(&forks, 1);
    }
    return unused;
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2 || count == 3, "usage: forks_at_once SECONDS|soak [HANDLERS]");
    unsigned seconds = soak_seconds(arguments[1]);
    long handlers = count == 3 ? strtol(arguments[2], NULL, 10) : 0;
    alarm(seconds + PATIENCE_SECONDS);
    pthread_t thread[FORKERS + BEARERS];
    for (uintptr_t t = 0; t < FORKERS + BEARERS; t++) {
        EXPECT(pthread_create(&thread[t], NULL, t < FORKERS ? fork_on : bear, (void *)(t * 100)) == 0, "no thread");
    }
    for (long end = tasks_clock() + (long)seconds * 1000, registered = 0;
         tasks_clock() < end || atomic_load(&forks) < FORKS_LEAST; tasks_sleep(5)) {
        for (int i = 0; i < 2 && registered < handlers; i++, registered++) {
            EXPECT(pthread_atfork(before, after, after) == 0, "handler %ld was refused", registered);
        }
    }
    atomic_store(&done, true);
    for (size_t t = 0; t < FORKERS + BEARERS; t++) {
        pthread_join(thread[t], NULL);
    }
    printf("%zu forks, %zu births\n", atomic_load(&forks), atomic_load(&births));
    return 0;
}
