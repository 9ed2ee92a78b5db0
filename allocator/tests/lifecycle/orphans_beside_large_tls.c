/* A program with much thread-local memory, more than the keeper's stack, forks while its threads work: in the child the keeper takes over
 * what they have left, and must do without thread-local variables, since libc has given it none. */
#include <pthread.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "swing.h"
#include "idle/tasks.h"

enum { TLS_BYTES = 128 << 10, THREADS = 8, SIZES = 200, BLOCKS = 32, SIZE = 1 << 20 };

static _Thread_local volatile char bytes[TLS_BYTES];
static pthread_barrier_t together;

static void *work(void *unused) {
    bytes[1] = 1;
    void *block[SIZES];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < SIZES; i++) {
            block[i] = unseen(malloc(16 + 8 * i));
        }
        for (size_t i = 0; i < SIZES; i++) {
            free(block[i]);
        }
    }
    pthread_barrier_wait(&together);
    pause();
    return unused;
}

__attribute__((noreturn)) static void idle(void) {
    size_t before = resident_kib();
    swing(BLOCKS, SIZE);
    size_t most = before + BLOCKS * SIZE / 4 / 1024;
    size_t left = tasks_await_resident(most);
    EXPECT(left <= most, "%zu KiB are resident in the child, %zu before", left, before);
    _exit(0);
}

int main(void) {
    require_serving();
    pthread_t thread;
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&together);
    bytes[0] = 1;
    pid_t child = fork();
    if (child == 0) {
        idle();
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "the child ended with wait status %#x", (unsigned)status);
    _exit(0);
}
