/* One thread allocates, another only frees, and neither ever does what the other does: what is freed must find its way
 * back to where it is allocated, or memory grows with every block that passes. The consumer never allocates, so its
 * frees must be delivered without any allocation of its own; the producer never frees, so it must find them. */
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "handover.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

enum {
    BLOCKS = 400000,
    PAIRS = 2,
    WARM = BLOCKS / 4, /* by then every queue has been full and every size has been seen */
    ROOM_KIB = 48 * 1024,
};

struct pair {
    struct handover queue;
    uint64_t seed;
    size_t warm_kib;
    size_t most_kib;
};

static struct pair pairs[PAIRS] = {
    {.queue = HANDOVER_INITIALIZER, .seed = 1},
    {.queue = HANDOVER_INITIALIZER, .seed = 2},
};

/* To 8 KiB, and one in fifty to 80 KiB: about 1 KiB on average, 400 MiB in all through a queue of 1 MiB. */
static size_t any_size(uint64_t *random) {
    size_t bits = pattern_below(random, 50) == 0 ? 16 : 4 + pattern_below(random, 9);
    return 16 + pattern_below(random, (size_t)1 << bits);
}

static void *produce(void *argument) {
    struct pair *pair = argument;
    uint64_t random = pair->seed;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = any_size(&random);
        uint64_t *block = malloc(size);
        EXPECT(block != NULL, "malloc(%zu) failed", size);
        block[0] = size;
        block[1] = i;
        pattern_fill(block, 16, size, i);
        handover_put(&pair->queue, block);
    }
    return NULL;
}

static void *consume(void *argument) {
    struct pair *pair = argument;
    for (size_t i = 0; i < BLOCKS; i++) {
        uint64_t *block = handover_get(&pair->queue);
        EXPECT(block[1] == i, "block %zu says it is number %zu", i, (size_t)block[1]);
        for (size_t at = 16; at + 8 <= block[0]; at += 8) {
            EXPECT(block[at / 8] == pattern_word(i, at / 8), "block %zu of %zu bytes: byte %zu changed", i,
                   (size_t)block[0], at);
        }
        free(block);
        if (i % (BLOCKS / 64) == 0) {
            size_t now = resident_kib();
            if (i <= WARM) {
                pair->warm_kib = now;
            } else if (now > pair->most_kib) {
                pair->most_kib = now;
            }
        }
    }
    return NULL;
}

int main(void) {
    require_serving();
    pthread_t producers[PAIRS];
    pthread_t consumers[PAIRS];
    for (size_t p = 0; p < PAIRS; p++) {
        EXPECT(pthread_create(&consumers[p], NULL, consume, &pairs[p]) == 0, "no thread");
        EXPECT(pthread_create(&producers[p], NULL, produce, &pairs[p]) == 0, "no thread");
    }
    for (size_t p = 0; p < PAIRS; p++) {
        pthread_join(producers[p], NULL);
        pthread_join(consumers[p], NULL);
        EXPECT(pairs[p].most_kib < pairs[p].warm_kib + ROOM_KIB, "resident memory grew from %zu to %zu KiB",
               pairs[p].warm_kib, pairs[p].most_kib);
    }
    return 0;
}
