/* Blocks of hundreds of mebibytes: their untouched pages take no memory, their contents survive realloc up and down
 * through the sizes where the kind of mapping changes, and freeing them gives the memory back. */
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

static const size_t mebibyte = 1 << 20;

/* One word per mebibyte, of those that end beyond `from`: enough to see that pages moved to where they belong. */
static void mark(unsigned char *block, size_t from, size_t to) {
    for (size_t at = 0; at + 8 <= to; at += mebibyte) {
        if (at + 8 <= from) {
            continue;
        }
        uint64_t word = pattern_word(3, at);
        memcpy(block + at, &word, 8);
    }
}

static void check(const unsigned char *block, size_t size) {
    for (size_t at = 0; at + 8 <= size; at += mebibyte) {
        uint64_t word = pattern_word(3, at);
        EXPECT(memcmp(block + at, &word, 8) == 0, "byte %zu of %zu changed", at, size);
    }
}

static void untouched(void) {
    size_t before = resident_kib();
    static const size_t sizes[] = {100, 200, 400, 800, 1500};
    void *blocks[10];
    size_t count = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        blocks[count] = malloc(sizes[i] * mebibyte);
        EXPECT(blocks[count] != NULL, "malloc of %zu MiB failed", sizes[i]);
        count++;
        blocks[count] = calloc(sizes[i], mebibyte);
        EXPECT(blocks[count] != NULL, "calloc of %zu MiB failed", sizes[i]);
        const unsigned char *zeros = blocks[count];
        EXPECT(zeros[0] == 0 && zeros[sizes[i] * mebibyte / 2] == 0 && zeros[sizes[i] * mebibyte - 1] == 0,
               "calloc of %zu MiB is not zero", sizes[i]);
        count++;
    }
    /* Six 2 MiB huge pages per block would still pass: it is the other 6 GiB that must not be there. */
    size_t grown = resident_more_kib(resident_kib(), before);
    EXPECT(grown < 128 * 1024, "%zu KiB are resident for blocks nobody touched", grown);
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

static void resized(void) {
    unsigned char *block = NULL;
    size_t size = 0;
    static const size_t steps[] = {1, 8, 40, 150, 400, 399, 900, 2000, 1200, 500, 100, 30, 700, 3, 1};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t wanted = steps[i] * mebibyte + i;
        block = realloc(block, wanted);
        EXPECT(block != NULL, "realloc from %zu to %zu bytes failed", size, wanted);
        check(block, size < wanted ? size : wanted);
        mark(block, size, wanted);
        size = wanted;
    }
    free(block);
}

static void given_back(void) {
    size_t before = resident_kib();
    unsigned char *block = malloc(400 * mebibyte);
    EXPECT(block != NULL, "malloc of 400 MiB failed");
    memset(block, 1, 100 * mebibyte);
    free(block);
    (void)freestone_purge();
    size_t after = resident_kib();
    EXPECT(after < before + 50 * 1024, "%zu KiB more are resident after free and freestone_purge", after - before);
}

static void aligned(void) {
    for (size_t alignment = 1 << 16; alignment <= ((size_t)1 << 30); alignment *= 4) {
        void *block = memalign(alignment, 300 * mebibyte);
        EXPECT(block != NULL, "memalign to %zu failed", alignment);
        EXPECT((uintptr_t)block % alignment == 0, "memalign to %zu gave %p", alignment, block);
        EXPECT(malloc_usable_size(block) >= 300 * mebibyte, "it holds %zu", malloc_usable_size(block));
        mark(block, 0, 300 * mebibyte);
        unsigned char *larger = realloc(block, 600 * mebibyte);
        EXPECT(larger != NULL, "realloc to 600 MiB failed");
        check(larger, 300 * mebibyte);
        free(larger);
        /* A small block with a huge alignment must not cost its alignment. */
        size_t before = resident_kib();
        block = memalign(alignment, 100);
        EXPECT(block != NULL && (uintptr_t)block % alignment == 0, "memalign to %zu of 100 bytes gave %p", alignment,
               block);
        memset(block, 1, 100);
        EXPECT(resident_kib() < before + 8 * 1024, "100 bytes aligned to %zu took %zu KiB", alignment,
               resident_kib() - before);
        free(block);
    }
}

int main(void) {
    require_serving();
    untouched();
    resized();
    given_back();
    aligned();
    return 0;
}
