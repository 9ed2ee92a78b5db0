/* posix_spawn and vfork from a program whose threads allocate all the while: the new programs start under the same
 * allocator, and the parent, whose memory a vfork child borrows, is unharmed. */
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

extern char **environ;

enum { THREADS = 8, PROGRAMS = 40, BLOCKS = 200 };

static atomic_bool done;

static void *churn(void *argument) {
    uint64_t random = (uintptr_t)argument;
    void *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS] = {0};
    while (!atomic_load_explicit(&done, memory_order_relaxed)) {
        size_t b = pattern_below(&random, BLOCKS);
        EXPECT(blocks[b] == NULL || pattern_mismatch(blocks[b], sizes[b], b) == SIZE_MAX, "a block changed");
        free(blocks[b]);
        sizes[b] = 1 + pattern_below(&random, 3000);
        blocks[b] = malloc(sizes[b]);
        EXPECT(blocks[b] != NULL, "malloc failed");
        pattern_fill(blocks[b], 0, sizes[b], b);
    }
    for (size_t b = 0; b < BLOCKS; b++) {
        free(blocks[b]);
    }
    return NULL;
}

static void wait_for(pid_t program) {
    int status = 0;
    EXPECT(waitpid(program, &status, 0) == program, "waitpid failed");
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the program ended with status 0x%x", (unsigned)status);
}

int main(int count, char **arguments) {
    require_serving();
    if (count == 2) { /* a spawned one: proving that it is served was all it had to do */
        free(unseen(malloc(100)));
        return 0;
    }
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&threads[t], NULL, churn, (void *)(t + 1)) == 0, "no thread");
    }
    char self[] = "/proc/self/exe";
    char *command[] = {arguments[0], (char[]){"spawned"}, NULL};
    for (size_t p = 0; p < PROGRAMS; p++) {
        pid_t program;
        EXPECT(posix_spawn(&program, self, NULL, NULL, command, environ) == 0, "posix_spawn failed");
        wait_for(program);
        program = vfork();
        if (program == 0) {
            execve(self, command, environ);
            _exit(1);
        }
        EXPECT(program > 0, "vfork failed");
        wait_for(program);
    }
    atomic_store(&done, true);
    for (size_t t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    return 0;
}
