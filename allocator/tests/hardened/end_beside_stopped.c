/* Threads are stopped by a signal, as collectors of garbage stop theirs, wherever they are in malloc or free, and never go on; the program ends
 * all the same, by exit, and whatever locks they have. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { CHILDREN = 100, THREADS = 2, BLOCKS = 64, OWN = 200 };

static _Atomic int working, stopped;

static void stop(int number) {
    (void)number;
    atomic_fetch_add(&stopped, 1);
    for (;;) {
        pause();
    }
}

/* The larger ones have short magazines: the threads are in the heap most of the time. */
static void *work(void *size) {
    void *block[BLOCKS];
    atomic_fetch_add(&working, 1);
    for (;;) {
        for (int i = 0; i < BLOCKS; i++) {
            block[i] = unseen(malloc((size_t)(uintptr_t)size));
        }
        for (int i = 0; i < BLOCKS; i++) {
            free(block[i]);
        }
    }
    return size;
}

static void end_beside(unsigned number) {
    size_t size = number % 2 == 0 ? 64 : 10000;
    void *own[OWN];
    for (int i = 0; i < OWN; i++) { /* some of which are looked at in the end */
        own[i] = unseen(malloc(size));
    }
    for (int i = 0; i < OWN; i++) {
        free(own[i]);
    }
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)size) == 0, "no thread");
    }
    while (atomic_load(&working) < THREADS) {
        usleep(100);
    }
    usleep(1000 + number * 37 % 1000);
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_kill(thread[i], SIGUSR1) == 0, "no signal");
    }
    while (atomic_load(&stopped) < THREADS) {
        usleep(100);
    }
    exit(0);
}

int main(void) {
    require_serving();
    EXPECT(signal(SIGUSR1, stop) != SIG_ERR, "no handler");
    for (unsigned i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0) {
            end_beside(i);
        }
        int status;
        EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child %u: wait status %#x", i,
               (unsigned)status);
    }
    return 0;
}
