/* calloc gives zeros as far as malloc_usable_size goes, whatever was in the memory before: after dirty blocks were freed, flushed,
 * purged and split, in every size, by every thread, and in a child that lives on emergency memory. */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void expect_zeros(const void *block, size_t size) {
    EXPECT(block != NULL, "calloc of %zu bytes failed", size);
    size_t usable = malloc_usable_size((void *)(uintptr_t)block);
    EXPECT(usable >= size, "calloc of %zu bytes holds %zu", size, usable);
    size_t dirty = pattern_not_zero(block, usable);
    EXPECT(dirty == SIZE_MAX, "calloc of %zu bytes: byte %zu of %zu usable ones is not zero", size, dirty, usable);
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
            expect_zeros(blocks[b], count * (size / count + 1));
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
        expect_zeros(block, other);
        free(block);
    }
}

/* Blocks of every class and some large ones, all of what they hold written before by somebody else. */
static void each_size(void) {
    enum { TOGETHER = 20 };
    for (size_t size = 0; size <= (size_t)2 << 20; size += size < 1200 ? 1 : size / 12) {
        void *blocks[TOGETHER];
        for (size_t i = 0; i < TOGETHER; i++) {
            blocks[i] = malloc(size);
            EXPECT(blocks[i] != NULL, "malloc(%zu) failed", size);
            memset(blocks[i], 0xff, malloc_usable_size(blocks[i]));
        }
        for (size_t i = 0; i < TOGETHER; i++) {
            free(blocks[i]);
        }
        for (size_t i = 0; i < TOGETHER; i++) {
            blocks[i] = calloc(1, size);
            expect_zeros(blocks[i], size);
        }
        for (size_t i = 0; i < TOGETHER; i++) {
            free(blocks[i]);
        }
    }
}

/* As programs do that keep a table: what comes behind the usable bytes that there were is cleared, and nothing else. */
static void grown(void) {
    for (size_t size = 1; size <= (size_t)64 << 20; size += size / 3 + 1) {
        unsigned char *block = malloc(size);
        EXPECT(block != NULL, "malloc(%zu) failed", size);
        memset(block, 0xff, malloc_usable_size(block));
        free(block);
        block = calloc(1, size);
        EXPECT(block != NULL, "calloc(%zu) failed", size);
        size_t had = malloc_usable_size(block);
        block = realloc(block, 2 * size + 100);
        EXPECT(block != NULL, "realloc to %zu bytes failed", 2 * size + 100);
        memset(block + had, 0, malloc_usable_size(block) - had);
        expect_zeros(block, 2 * size + 100);
        free(block);
    }
}

static void *wait_for_ever(void *argument) {
    for (;;) {
        pause();
    }
    return argument;
}

/* Beside another thread, by a call that no handler of a fork sees. */
static void in_unannounced_child(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0, "no thread");
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    EXPECT(child >= 0, "fork failed");
    if (child == 0) {
        each_size();
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "child: wait status %#x", (unsigned)status);
}

int main(void) {
    require_serving();
    fuzz((void *)(uintptr_t)1);
    partly_dirty();
    each_size();
    grown();
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&threads[t], NULL, fuzz, (void *)(t + 100)) == 0, "no thread");
    }
    for (size_t t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    in_unannounced_child();
    return 0;
}
