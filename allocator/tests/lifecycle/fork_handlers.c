/* Functions registered with pthread_atfork use the heap, in the parent before and after and in the child, whether they
 * were registered before the allocator's own or long after: its own must enclose them all, or know them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "fork_handlers_library.h"
#include "serving.h"

enum { FORKS = 20, SETS = 60, PATIENCE_SECONDS = 30 };

static atomic_bool done;

static void *churn(void *unused) {
    while (!atomic_load(&done)) {
        free(unseen(malloc(100)));
    }
    return unused;
}

int main(void) {
    require_serving();
    EXPECT(fork_handlers_calls == 0, "handlers ran before any fork");
    for (size_t s = 1; s < SETS; s++) {
        fork_handlers_register();
    }
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, churn, NULL) == 0, "no thread");
    alarm(PATIENCE_SECONDS); /* a handler that waits for a lock its own thread holds waits for ever */
    for (size_t f = 0; f < FORKS; f++) {
        fork_handlers_calls = 0;
        pid_t child = fork();
        EXPECT(child >= 0, "fork failed");
        EXPECT(fork_handlers_calls == 2 * SETS, "%d handlers ran, not %d", fork_handlers_calls, 2 * SETS);
        if (child == 0) {
            free(malloc(1000));
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status 0x%x",
               (unsigned)status);
    }
    atomic_store(&done, true);
    pthread_join(thread, NULL);
    return 0;
}
