/* Far more threads than CPUs, alive at once, each with blocks of its own in hand when it is time to free them in
 * another thread's order: heaps are bounded by CPUs, so most threads share one. */
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { THREADS = 200, BLOCKS = 200, ROUNDS = 4 };

static void *blocks[THREADS][BLOCKS];
static pthread_barrier_t together;

static size_t size_of(size_t thread, size_t block) { return 1 + (thread * 131 + block * 17) % 2000; }

static void *live(void *argument) {
    size_t self = (uintptr_t)argument;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t b = 0; b < BLOCKS; b++) {
            blocks[self][b] = malloc(size_of(self, b));
            EXPECT(blocks[self][b] != NULL, "malloc failed");
            pattern_fill(blocks[self][b], 0, size_of(self, b), self * BLOCKS + b);
        }
        pthread_barrier_wait(&together);
        size_t other = (self + 1 + round) % THREADS;
        for (size_t b = 0; b < BLOCKS; b++) {
            size_t mismatch = pattern_mismatch(blocks[other][b], size_of(other, b), other * BLOCKS + b);
            EXPECT(mismatch == SIZE_MAX, "block %zu of thread %zu: byte %zu changed", b, other, mismatch);
            free(blocks[other][b]);
        }
        pthread_barrier_wait(&together);
    }
    return NULL;
}

int main(void) {
    require_serving();
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    pthread_barrier_init(&together, NULL, THREADS);
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&threads[t], &small, live, (void *)t) == 0, "no thread");
    }
    for (size_t t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    return 0;
}
