/* Blocks outlive the thread that allocated them: another reads them, frees them and reuses their memory. Round after
 * round of such threads must not add up. */
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

enum { BLOCKS = 20000, ROUNDS = 60, WARM = 10, ROOM_KIB = 16 * 1024 };

static void *blocks[BLOCKS];
static size_t sizes[BLOCKS];

static void *allocate_and_end(void *argument) {
    uint64_t random = (uintptr_t)argument;
    for (size_t b = 0; b < BLOCKS; b++) {
        sizes[b] = 1 + pattern_below(&random, (size_t)1 << (3 + pattern_below(&random, 9)));
        blocks[b] = malloc(sizes[b]);
        EXPECT(blocks[b] != NULL, "malloc(%zu) failed", sizes[b]);
        pattern_fill(blocks[b], 0, sizes[b], b);
    }
    return NULL;
}

static void *free_and_end(void *argument) {
    uint64_t random = (uintptr_t)argument;
    /* From a random place on, so that slabs do not empty in the order they filled. */
    size_t start = pattern_below(&random, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t b = (start + i * 7919) % BLOCKS; /* 7919 is a prime that does not divide BLOCKS: visits each once */
        size_t mismatch = pattern_mismatch(blocks[b], sizes[b], b);
        EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed after its owner ended", mismatch, sizes[b]);
        free(blocks[b]);
    }
    return NULL;
}

static void in_thread(void *(*work)(void *), uintptr_t seed) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, work, (void *)seed) == 0, "no thread");
    pthread_join(thread, NULL);
}

int main(void) {
    require_serving();
    size_t warm = 0;
    for (uintptr_t round = 0; round < ROUNDS; round++) {
        in_thread(allocate_and_end, round + 1);
        in_thread(free_and_end, round + 1);
        if (round == WARM) {
            warm = resident_kib();
        }
    }
    size_t end = resident_kib();
    EXPECT(end < warm + ROOM_KIB, "resident memory grew from %zu to %zu KiB in %d rounds", warm, end, ROUNDS - WARM);
    return 0;
}
