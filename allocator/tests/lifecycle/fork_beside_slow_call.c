/* The kernel lets one thread wait for seconds in a call of the library's, as it does while another brings in or locks much memory. A fork
 * meanwhile waits as well; its child is as whole as any other: memory that it frees is used again. Other threads
 * of the program do not wait as long: each is served.
 *
 *   fork_beside_slow_call [inside]      inside: who forks is a signal's handler that has interrupted its own thread there, and may have
 *                                       what the other waits for: it does not wait as long */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../faults/gate.h"
#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "whole_child.h"

enum { WAIT_MS = 2500, LARGE = 150 << 20, WAITED_MS = 4 };

static _Thread_local bool is_slow, forks_here;
static long fork_ms = -1;
static atomic_bool waits, done;
static atomic_long longest_ms; /* that another thread waited for a block meanwhile */
static atomic_int served, delayed; /* blocks that were had; those of them that took WAITED_MS or more */

static void fork_inside(void) {
    long before = tasks_clock();
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    fork_ms = tasks_clock() - before;
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child ended with status 0x%x",
           (unsigned)status);
}

static int decide(long number, const long arguments[6]) {
    (void)number, (void)arguments;
    if (forks_here) {
        forks_here = false;
        fork_inside();
    }
    if (is_slow) {
        is_slow = false;
        atomic_store(&waits, true);
        tasks_sleep(WAIT_MS);
    }
    return 0;
}

static void *allocate_slowly(void *barrier) {
    free(unseen(malloc(LARGE)));
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier); /* the gate is closed now */
    is_slow = true;
    free(unseen(malloc(LARGE)));
    while (!atomic_load(&done)) { /* a thread may not end behind this gate */
        tasks_sleep(10);
    }
    return NULL;
}

static void *allocate_meanwhile(void *unused) {
    enum { SOME = 1 << 20, NAP_MS = 5 };
    while (!atomic_load(&waits)) {
        tasks_sleep(1);
    }
    while (!atomic_load(&done)) {
        long before = tasks_clock();
        free(unseen(malloc(SOME)));
        long took = tasks_clock() - before;
        atomic_store(&longest_ms, took > atomic_load(&longest_ms) ? took : atomic_load(&longest_ms));
        atomic_fetch_add(&served, 1);
        atomic_fetch_add(&delayed, took >= WAITED_MS);
        tasks_sleep(NAP_MS);
    }
    while (true) { /* nor may this one end */
        tasks_sleep(10);
    }
    return unused;
}

int main(int count, char **arguments) {
    (void)arguments;
    require_serving();
    static const long calls[] = {SYS_mmap, SYS_munmap, SYS_madvise};
    pthread_barrier_t barrier;
    EXPECT(pthread_barrier_init(&barrier, NULL, 2) == 0, "no barrier");
    pthread_t thread, other;
    EXPECT(pthread_create(&thread, NULL, allocate_slowly, &barrier) == 0, "no thread");
    EXPECT(pthread_create(&other, NULL, allocate_meanwhile, NULL) == 0, "no thread");
    pthread_barrier_wait(&barrier);
    gate_close(calls, sizeof calls / sizeof *calls, false, decide);
    pthread_barrier_wait(&barrier);
    while (!atomic_load(&waits)) {
        tasks_sleep(1);
    }
    if (count > 1) {
        forks_here = true;
        free(unseen(malloc(LARGE)));
        EXPECT(fork_ms >= 0 && fork_ms < WAIT_MS / 2, "a fork in a handler took %ld ms beside a call that took %d",
               fork_ms, WAIT_MS);
        _exit(0);
    }
    pid_t child = fork();
    EXPECT(child >= 0, "fork failed");
    if (child == 0) {
        whole_child();
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status 0x%x", (unsigned)status);
    /* Who waits for the fork waits for the other's call. */
    EXPECT(atomic_load(&longest_ms) < WAIT_MS / 2 && atomic_load(&served) > 10,
           "a block was waited for for %ld ms beside a call that took %d, and %d were had", atomic_load(&longest_ms),
           WAIT_MS, atomic_load(&served));
    /* Once it was in vain nobody waits any more. */
    EXPECT(atomic_load(&delayed) * 2 < atomic_load(&served), "%d of %d blocks were waited for", atomic_load(&delayed),
           atomic_load(&served));
    atomic_store(&done, true);
    _exit(0);
}
