/* The kernel takes its time over one thread's mapping, as it does while others bring in or lock much memory. Other threads allocate, resize and
 * free mappings of their own meanwhile: nobody holds a lock that they need. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "../faults/gate.h"
#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { HELD_MOST_MS = 2000, LARGE = 150 << 20, BLOCKS = 3 };

static _Thread_local bool is_slow;
static atomic_bool held, done;
static void *block[BLOCKS], *slow;

/* The call is held until the others are done, and not for ever: who waits for it goes on, and too late. */
static int decide(long number, const long arguments[6]) {
    (void)number, (void)arguments;
    if (is_slow) {
        is_slow = false;
        atomic_store(&held, true);
        for (long end = tasks_clock() + HELD_MOST_MS; !atomic_load(&done) && tasks_clock() < end; tasks_sleep(1)) {
        }
        atomic_store(&held, false);
    }
    return 0;
}

static void *free_slowly(void *barrier) {
    pthread_barrier_wait(barrier); /* the gate is closed */
    is_slow = true;
    free(slow);
    while (true) { /* a thread may not end behind this gate */
        tasks_sleep(10);
    }
    return barrier;
}

static void expect_held(const char *what) { EXPECT(atomic_load(&held), "%s waited for another thread's munmap", what); }

int main(void) {
    require_serving();
    static const long calls[] = {SYS_munmap};
    pthread_barrier_t barrier;
    pthread_t thread;
    EXPECT((slow = unseen(malloc(LARGE))) != NULL, "no block");
    for (size_t i = 0; i < BLOCKS; i++) {
        EXPECT((block[i] = unseen(malloc(LARGE))) != NULL, "no block");
    }
    EXPECT(pthread_barrier_init(&barrier, NULL, 2) == 0, "no barrier");
    EXPECT(pthread_create(&thread, NULL, free_slowly, &barrier) == 0, "no thread");
    gate_close(calls, sizeof calls / sizeof *calls, false, decide);
    pthread_barrier_wait(&barrier);
    while (!atomic_load(&held)) {
        tasks_sleep(1);
    }
    free(block[0]);
    expect_held("free");
    EXPECT(unseen(malloc(LARGE)) != NULL, "no block");
    expect_held("malloc");
    EXPECT(unseen(realloc(block[1], 2 * (size_t)LARGE)) != NULL, "no block");
    expect_held("realloc");
    EXPECT(malloc_usable_size(block[2]) >= LARGE, "no block");
    expect_held("malloc_usable_size");
    atomic_store(&done, true);
    _exit(0);
}
