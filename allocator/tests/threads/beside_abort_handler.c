/* A double free is reported, and the program's handler of SIGABRT goes on for a while, as crash reporters do: it allocates, forks and waits for
 * the other threads. These allocate and free meanwhile: no block of theirs is overwritten, nothing is reported that is not so, and each of them
 * ends. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { THREADS = 6, BLOCKS = 400, BOXES = 64, LARGEST = 16000, OPERATIONS = 250000, WAIT_MS = 60000 };

static atomic_bool stop;
static atomic_int reports; /* riscv64 exchanges no single byte */
static atomic_long operations, overwritten;
static atomic_int ended;
static _Atomic(void *) box[BOXES]; /* blocks that another thread frees */

static void *work(void *number) {
    uint64_t seed = (uint64_t)(uintptr_t)number;
    unsigned char *block[BLOCKS] = {0};
    size_t size[BLOCKS], pattern = (size_t)seed * BLOCKS;
    while (!atomic_load(&stop)) {
        size_t b = pattern_below(&seed, BLOCKS);
        if (block[b] == NULL) {
            size[b] = 8 + pattern_below(&seed, LARGEST);
            block[b] = malloc(size[b]);
            EXPECT(block[b] != NULL, "no memory");
            pattern_fill(block[b], 0, size[b], pattern + b);
        } else {
            atomic_fetch_add(&overwritten, pattern_mismatch(block[b], size[b], pattern + b) != SIZE_MAX);
            free(atomic_exchange(&box[pattern_below(&seed, BOXES)], block[b]));
            block[b] = NULL;
        }
        atomic_fetch_add(&operations, 1);
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static void allocate_some(void) {
    for (size_t i = 1; i < 2000; i++) {
        void *block = unseen(malloc(i * 10));
        EXPECT(block != NULL, "no memory in a handler");
        free(block);
    }
}

/* Not for more than so many naps, whatever the clock says. */
static void await(bool (*is_so)(void), const char *what) {
    for (int nap = 0; !is_so(); nap++) {
        EXPECT(nap < WAIT_MS, "%s", what);
        usleep(1000);
    }
}

static long operations_before;
static bool have_gone_on(void) { return atomic_load(&operations) >= operations_before + OPERATIONS; }
static bool have_ended(void) { return atomic_load(&ended) == THREADS; }

static void on_abort(int signal) {
    (void)signal;
    EXPECT(atomic_fetch_add(&reports, 1) == 0, "a second report");
    operations_before = atomic_load(&operations);
    allocate_some();
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    pid_t child = fork();
    if (child == 0) {
        allocate_some();
        _exit(0);
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "wait status %#x", (unsigned)status);
    await(have_gone_on, "other threads do not go on beside a handler of SIGABRT");
    atomic_store(&stop, true);
    await(have_ended, "a thread does not end beside a handler of SIGABRT");
    EXPECT(atomic_load(&overwritten) == 0, "%ld blocks were overwritten", atomic_load(&overwritten));
    _exit(0);
}

int main(void) {
    require_serving();
    EXPECT(signal(SIGABRT, on_abort) != SIG_ERR, "no handler");
    pthread_t thread;
    for (uintptr_t t = 1; t <= THREADS; t++) {
        EXPECT(pthread_create(&thread, NULL, work, (void *)t) == 0, "no thread");
    }
    while (atomic_load(&operations) < OPERATIONS / 10) {
        usleep(1000);
    }
    void *block = unseen(malloc(64));
    free(block);
    free(unseen(block));
    freestone_purge();
    EXPECT(0, "a double free went unnoticed");
}
