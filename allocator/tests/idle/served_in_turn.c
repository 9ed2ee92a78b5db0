/* A pool of threads that serve one request at a time: whatever each leaves in its own cache, the process must not come to
 * hold a request for every thread, and what it does hold goes back while all of them sleep. */
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"
#include "tasks.h"

enum {
    POOL = 64,
    TURNS = 2,
    BLOCKS = 2500, /* of a request: 2.5 MiB */
    LARGEST = 2048,
    MOST_A_THREAD_KIB = 1536,
    MOST_LEFT_KIB = 24 * 1024,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* turn */
static pthread_cond_t passed_on = PTHREAD_COND_INITIALIZER;
static size_t turn; /* of every thread of the pool, then of the main one, which serves nothing, and so on */
static size_t most_kib;
static void *blocks[BLOCKS]; /* of the request that is being served */

static void serve(uint64_t seed) {
    uint64_t random = seed;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = 1 + pattern_below(&random, LARGEST);
        blocks[i] = malloc(size);
        EXPECT(blocks[i] != NULL, "malloc(%zu) failed", size);
        pattern_fill(blocks[i], 0, size, i);
    }
    size_t now_kib = resident_kib();
    most_kib = now_kib > most_kib ? now_kib : most_kib;
    random = seed;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = 1 + pattern_below(&random, LARGEST);
        EXPECT(pattern_mismatch(blocks[i], size, i) == SIZE_MAX, "block %zu of request %zu has changed", i,
               (size_t)seed);
        free(blocks[i]);
    }
}

static void *wait_for_requests(void *argument) {
    size_t self = (uintptr_t)argument;
    pthread_mutex_lock(&lock);
    for (size_t served = 0; served < TURNS; served++) {
        while (turn != served * (POOL + 1) + self) {
            pthread_cond_wait(&passed_on, &lock);
        }
        serve(turn);
        turn++;
        pthread_cond_broadcast(&passed_on);
    }
    while (turn <= TURNS * (POOL + 1)) { /* the next request never comes */
        pthread_cond_wait(&passed_on, &lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    require_serving();
    serve(1000); /* one thread's worth is no part of the question */
    size_t alone_kib = resident_kib();
    pthread_t thread;
    pthread_mutex_lock(&lock);
    for (uintptr_t t = 0; t < POOL; t++) {
        EXPECT(pthread_create(&thread, NULL, wait_for_requests, (void *)t) == 0, "no thread");
    }
    for (size_t served = 0; served < TURNS; served++) {
        while (turn != served * (POOL + 1) + POOL) {
            pthread_cond_wait(&passed_on, &lock);
        }
        turn++;
        pthread_cond_broadcast(&passed_on);
    }
    pthread_mutex_unlock(&lock);
    EXPECT(most_kib < alone_kib + POOL * MOST_A_THREAD_KIB, "%zu KiB with one thread, %zu with %d in turn", alone_kib,
           most_kib, POOL);
    size_t left_kib = tasks_await_resident(alone_kib + MOST_LEFT_KIB);
    EXPECT(left_kib <= alone_kib + MOST_LEFT_KIB,
           "%zu KiB with one thread, %zu at most with %d, %zu after %d idle milliseconds", alone_kib, most_kib, POOL,
           left_kib, IDLE_MS);
    return 0;
}
