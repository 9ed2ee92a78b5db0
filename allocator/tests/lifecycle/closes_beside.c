/* A task that never allocates closes descriptors that it did not open, as before an exec, and opens its own, while the main thread's heap grows. None
 * of its own is closed by the library, which looks for a limit of the control group only while nobody else uses the descriptors.
 *
 *   closes_beside pthread|thrd|clone */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <threads.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { ROUNDS = 60, MIB = 1 << 20, GROWN = 400, TRIES = 20, LEFT = 3, LOWEST = 3, STACK = 64 << 10 };

static atomic_bool begun, done;
static atomic_size_t lost;

static int use_descriptors(void *unused) {
    (void)unused;
    while (!atomic_load(&done)) {
        int ends[2];
        for (int i = LOWEST; i < LOWEST + LEFT; i++) {
            close(i);
        }
        if (pipe(ends) != 0) {
            continue;
        }
        atomic_store(&begun, true);
        for (int i = 0; i < TRIES; i++) {
            bool open = fcntl(ends[0], F_GETFD) >= 0 && fcntl(ends[1], F_GETFD) >= 0;
            atomic_fetch_add(&lost, !open);
        }
    }
    return 0;
}

static void *run_thread(void *unused) {
    (void)use_descriptors(unused);
    return NULL;
}

static void start(const char *how) {
    if (strcmp(how, "pthread") == 0) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, run_thread, NULL) == 0, "no thread");
    } else if (strcmp(how, "thrd") == 0) {
        thrd_t thread;
        EXPECT(thrd_create(&thread, use_descriptors, NULL) == thrd_success, "no thread");
    } else {
        static _Alignas(16) char stack[STACK];
        EXPECT(clone(use_descriptors, stack + STACK, CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, NULL) > 0,
               "no task");
    }
}

static _Noreturn void grow_beside(const char *how) {
    start(how);
    while (!atomic_load(&begun)) {
        sched_yield();
    }
    for (int i = 0; i < GROWN; i++) {
        char *block = unseen(malloc(MIB));
        EXPECT(block != NULL, "malloc failed");
        block[0] = 1;
    }
    _exit(atomic_load(&lost) != 0);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "which task");
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = fork();
        if (child == 0) {
            grow_beside(arguments[1]);
        }
        int status = 0;
        EXPECT(child > 0 && waitpid(child, &status, 0) == child, "no child");
        EXPECT(status == 0, "round %d: a pipe of the task is closed, wait status %#x", round, (unsigned)status);
    }
    return 0;
}
