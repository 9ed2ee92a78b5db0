/* What libfreestone says it holds is what the kernel says, to 3 %, in four threads with small and large blocks.
 *
 *   stats_gap freed        as soon as much was freed here and there
 *   stats_gap returned     when that fell due and no more of it is given back, with all threads asleep */
#include "hazard.h"

#include <malloc.h>

enum { THREADS = 4, SIZES = 6, SMALL = 20000, LARGE = 12, GAP_PERMILLE = 30, STILL_MS = 2500, WAIT_MS = 20000 };

static pthread_barrier_t together;
static void *small[THREADS][SMALL], *large[THREADS][LARGE];

static void *work(void *argument) {
    static const size_t sizes[SIZES] = {40, 160, 700, 1500, 4000, 12000};
    size_t me = (size_t)(uintptr_t)argument;
    char *volatile stack = (char[16384]){1};
    (void)stack;
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together); /* what is no heap's has been looked at */
    for (size_t i = 0; i < SMALL; i++) {
        size_t size = sizes[i % SIZES];
        small[me][i] = malloc(size);
        EXPECT(small[me][i] != NULL, "malloc failed");
        memset(small[me][i], 1, size);
    }
    for (size_t i = 0; i < LARGE; i++) {
        size_t size = (size_t)(i + 1) * 300000;
        large[me][i] = malloc(size);
        EXPECT(large[me][i] != NULL, "malloc failed");
        memset(large[me][i], 1, size);
    }
    for (size_t i = 0; i < SMALL; i++) {
        if (i % 3 != 0 && i % 64 >= 8) {
            free(small[me][i]);
        }
    }
    for (size_t i = 0; i < LARGE; i += 2) {
        free(large[me][i]);
    }
    pthread_barrier_wait(&together);
    for (;;) {
        pause();
    }
    return NULL;
}

static size_t anonymous_kib(void) { return proc_number("/proc/self/smaps_rollup", "Anonymous:"); }

static size_t told_kib(void) {
    struct freestone_stats told;
    freestone_stats_read(&told);
    return (told.slabs - told.clean + told.large + told.retained + told.bookkeeping) / 1024;
}

/* Returns what is held when it has not fallen for a while. */
static size_t await_stillness(void) {
    size_t least = anonymous_kib();
    long still_since = tasks_clock();
    for (long end = still_since + WAIT_MS; tasks_clock() < end && tasks_clock() < still_since + STILL_MS;) {
        tasks_sleep(50);
        size_t now = anonymous_kib();
        if (now < least) {
            least = now;
            still_since = tasks_clock();
        }
    }
    return anonymous_kib();
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: stats_gap freed|returned");
    memset(small, 1, sizeof small);
    memset(large, 1, sizeof large);
    free(unseen(malloc(1)));
    (void)proc_number("/proc/self/smaps_rollup", "Anonymous:"); /* what that takes itself is counted before */
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (uintptr_t t = 0; t < THREADS; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, work, (void *)t) == 0, "no thread");
    }
    pthread_barrier_wait(&together);
    size_t before = anonymous_kib(), told_before = told_kib();
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    size_t full = anonymous_kib() - before, told = told_kib() - told_before, kernel = full;
    if (strcmp(arguments[1], "returned") == 0) {
        kernel = await_stillness() - before;
        if (kernel * 10 > full * 9) { /* some have to be asked */
            malloc_trim(0);
            kernel = anonymous_kib() - before;
        }
        told = told_kib() - told_before;
        EXPECT(kernel * 10 <= full * 9, "nothing was given back: %zu KiB, before %zu", kernel, full);
    }
    size_t gap = told > kernel ? told - kernel : kernel - told;
    EXPECT(gap * 1000 <= kernel * GAP_PERMILLE, "%s: it says %zu KiB, the kernel %zu", arguments[1], told, kernel);
    printf("%s: it says %zu KiB, the kernel %zu\n", arguments[1], told, kernel);
    return 0;
}
