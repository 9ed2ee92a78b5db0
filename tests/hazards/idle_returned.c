/* A program fills memory, frees nearly all of it here and there, and makes no further call: what lies free goes back.
 *
 *   idle_returned alone|blocked    blocked: by 16 threads, which then wait for ever */
#include "hazard.h"

enum { BLOCKS = 256 * 1024, SIZE = 1024, THREADS = 16, KEEP_ONE_IN = 20, RETURNED_PERCENT = 70 };

static void *block[BLOCKS];
static unsigned char kept[BLOCKS];
static pthread_barrier_t together;

static void fill(size_t from, size_t step) {
    for (size_t i = from; i < BLOCKS; i += step) {
        block[i] = malloc(SIZE);
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, SIZE);
    }
}

static void thin_out(size_t from, size_t step) {
    for (size_t i = from; i < BLOCKS; i += step) {
        if (!kept[i]) {
            free(block[i]);
        }
    }
}

static void *work(void *argument) {
    fill((uintptr_t)argument, THREADS);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    thin_out((uintptr_t)argument, THREADS);
    pthread_barrier_wait(&together);
    for (;;) {
        pause();
    }
    return NULL;
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: idle_returned alone|blocked");
    uint64_t random = 1;
    for (size_t i = 0; i < BLOCKS; i++) {
        kept[i] = pattern_below(&random, KEEP_ONE_IN) == 0;
        block[i] = NULL;
    }
    memset(block, 1, sizeof block);
    size_t before = resident_kib(), full;
    if (strcmp(arguments[1], "blocked") == 0) {
        pthread_barrier_init(&together, NULL, THREADS + 1);
        for (uintptr_t t = 0; t < THREADS; t++) {
            pthread_t thread;
            EXPECT(pthread_create(&thread, NULL, work, (void *)t) == 0, "no thread");
        }
        pthread_barrier_wait(&together);
        full = resident_kib();
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&together);
    } else {
        fill(0, 1);
        full = resident_kib();
        thin_out(0, 1);
    }
    size_t most = full - (full - before) * RETURNED_PERCENT / 100;
    long start = tasks_clock();
    size_t left = resident_after_rest(most);
    size_t percent = percent_given_back(before, full - before, left);
    EXPECT(left <= most, "%zu %% given back in %d s", percent, RETURNED_S);
    printf("%zu %% given back after %ld ms\n", percent, tasks_clock() - start);
    fflush(stdout);
    _exit(0);
}
