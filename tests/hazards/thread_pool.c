/* A server with a pool of threads that has one request at a time: a pool of 64 holds hardly more than a pool of one. */
#include "hazard.h"

enum { THREADS_MOST = 64, REQUESTS = 640, BLOCKS = 2000, TIMES = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the two below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t turn, done, threads;

static void request(uint64_t random) {
    void *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = 16 + pattern_below(&random, pattern_below(&random, 20) == 0 ? 32768 : 1024);
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, size);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
}

static void *serve(void *argument) {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (turn % threads != (uintptr_t)argument || turn != done) {
            pthread_cond_wait(&changed, &lock);
        }
        size_t mine = turn;
        pthread_mutex_unlock(&lock);
        request(mine);
        pthread_mutex_lock(&lock);
        done++;
        pthread_cond_broadcast(&changed);
        while (turn == mine) {
            pthread_cond_wait(&changed, &lock);
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static size_t *held_kib; /* in memory that processes share */

static void pool(void) {
    size_t before = resident_kib();
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    for (uintptr_t t = 0; t < threads; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, &small, serve, (void *)t) == 0, "no thread");
    }
    for (size_t r = 0; r < REQUESTS; r++) {
        pthread_mutex_lock(&lock);
        while (done != r + 1) {
            pthread_cond_wait(&changed, &lock);
        }
        turn++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    *held_kib = resident_kib() - before;
}

int main(void) {
    require_serving();
    held_kib = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(held_kib != MAP_FAILED, "no mapping");
    threads = 1;
    EXPECT(in_process(pool) == 0, "the pool of one ended badly");
    size_t alone = *held_kib;
    threads = THREADS_MOST;
    EXPECT(in_process(pool) == 0, "the pool of %d ended badly", THREADS_MOST);
    /* Two pages of its stack are every thread's own. */
    size_t pooled = *held_kib - THREADS_MOST * (size_t)20;
    EXPECT(pooled <= alone * TIMES, "%zu KiB with one thread, %zu with %d", alone, pooled, THREADS_MOST);
    printf("%zu KiB with one thread, %zu with %d\n", alone, pooled, THREADS_MOST);
    return 0;
}
