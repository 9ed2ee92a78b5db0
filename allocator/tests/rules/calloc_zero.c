/* calloc gives zeros, whatever was in the memory before: after dirty blocks were freed, flushed, purged and split, in
 * every size, by every thread. */
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { BLOCKS = 256, STEPS = 10000, THREADS = 4 };

static size_t any_size(uint64_t *random) {
    /* Mostly small, some to 4 MiB: each power of two about equally often, the larger ones rarer. */
    size_t bits = pattern_below(random, 100) < 90 ? 4 + pattern_below(random, 11) : 14 + pattern_below(random, 9);
    return 1 + pattern_below(random, (size_t)1 << bits);
}

static void *fuzz(void *seed) {
    uint64_t random = (uint64_t)(uintptr_t)seed;
    void *blocks[BLOCKS] = {NULL};
    for (size_t step = 0; step < STEPS; step++) {
        size_t b = pattern_below(&random, BLOCKS);
        free(blocks[b]);
        size_t size = any_size(&random);
        if (pattern_below(&random, 3) == 0) {
            blocks[b] = malloc(size);
            EXPECT(blocks[b] != NULL, "malloc(%zu) failed", size);
        } else {
            size_t count = 1 + pattern_below(&random, 4);
            blocks[b] = calloc(count, size / count + 1);
            EXPECT(blocks[b] != NULL, "calloc of %zu bytes failed", size);
            size_t dirty = pattern_not_zero(blocks[b], count * (size / count + 1));
            EXPECT(dirty == SIZE_MAX, "calloc of %zu bytes: byte %zu is not zero", count * (size / count + 1), dirty);
        }
        memset(blocks[b], 0xff, malloc_usable_size(blocks[b]));
        if (pattern_below(&random, 2000) == 0) {
            (void)freestone_purge();
        }
    }
    for (size_t b = 0; b < BLOCKS; b++) {
        free(blocks[b]);
    }
    return NULL;
}

/* Only part of a block dirty, purged or not: what is known to be zero must be known page by page. */
static void partly_dirty(void) {
    uint64_t random = 5;
    for (size_t round = 0; round < 300; round++) {
        size_t size = 4096 + pattern_below(&random, 3 << 20);
        unsigned char *block = malloc(size);
        EXPECT(block != NULL, "malloc(%zu) failed", size);
        for (size_t i = 0; i < 5; i++) {
            block[pattern_below(&random, size)] = 0xff;
        }
        free(block);
        if (round % 16 == 0) {
            (void)freestone_purge();
        }
        size_t other = 4096 + pattern_below(&random, 3 << 20);
        block = calloc(1, other);
        EXPECT(block != NULL, "calloc(%zu) failed", other);
        size_t dirty = pattern_not_zero(block, other);
        EXPECT(dirty == SIZE_MAX, "calloc of %zu bytes: byte %zu is not zero", other, dirty);
        free(block);
    }
}

int main(void) {
    require_serving();
    fuzz((void *)(uintptr_t)1);
    partly_dirty();
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&threads[t], NULL, fuzz, (void *)(t + 100)) == 0, "no thread");
    }
    for (size_t t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    return 0;
}
