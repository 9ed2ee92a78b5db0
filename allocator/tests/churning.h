/* Threads that take, grow and free blocks of all sizes at random until they are told to stop, for what is to hold beside them. */
#ifndef FREESTONE_TESTS_CHURNING_H
#define FREESTONE_TESTS_CHURNING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "churn.h"

enum { CHURNING_THREADS = 3, CHURNING_MOST_BITS = 27 };

static struct {
    atomic_bool stop;
    pthread_t thread[CHURNING_THREADS];
} churning;

static inline void *churning_work(void *argument) {
    struct churn churn = {.random = (uintptr_t)argument, .most_bits = CHURNING_MOST_BITS};
    while (!atomic_load(&churning.stop)) {
        churn_step(&churn);
    }
    churn_end(&churn);
    return NULL;
}

static inline void churning_begin(void) {
    for (uintptr_t t = 0; t < CHURNING_THREADS; t++) {
        EXPECT(pthread_create(&churning.thread[t], NULL, churning_work, (void *)(t + 1)) == 0, "no thread");
    }
}

static inline void churning_end(void) {
    atomic_store(&churning.stop, true);
    for (size_t t = 0; t < CHURNING_THREADS; t++) {
        pthread_join(churning.thread[t], NULL);
    }
}

#endif
