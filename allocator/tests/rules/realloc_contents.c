/* realloc keeps the contents, up and down across every edge between block sizes to beyond 1 MiB, in random jumps, and
 * in the ladder of small steps by which vectors grow. */
#include "conventions.h"
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

static void *resized(void *block, size_t from, size_t to, uint64_t id) {
    void *moved = realloc(block, to);
    EXPECT(moved != NULL, "realloc from %zu to %zu bytes failed", from, to);
    EXPECT((uintptr_t)moved % least_alignment(to) == 0, "realloc to %zu bytes gave %p", to, moved);
    EXPECT(malloc_usable_size(moved) >= to, "realloc to %zu bytes gave %zu", to, malloc_usable_size(moved));
    size_t kept = from < to ? from : to;
    size_t mismatch = pattern_mismatch(moved, kept, id);
    EXPECT(mismatch == SIZE_MAX, "realloc from %zu to %zu bytes changed byte %zu", from, to, mismatch);
    pattern_fill(moved, kept, to, id);
    return moved;
}

/* Every size at which the usable size changes, found by asking: the edges are the allocator's own business. */
static void across_every_edge(void) {
    enum { LIMIT = 1 << 20 };
    size_t size = 1;
    while (size <= LIMIT + LIMIT / 2) {
        void *block = malloc(size);
        EXPECT(block != NULL, "malloc(%zu) failed", size);
        size_t edge = malloc_usable_size(block);
        pattern_fill(block, 0, size, edge);
        block = resized(block, size, edge, edge);
        block = resized(block, edge, edge + 1, edge);
        block = resized(block, edge + 1, edge, edge);
        block = resized(block, edge, edge / 2 + 1, edge);
        block = resized(block, edge / 2 + 1, 2 * edge, edge);
        block = resized(block, 2 * edge, edge / 8 + 1, edge);
        block = resized(block, edge / 8 + 1, edge + 1, edge);
        free(block);
        size = beyond_edge(edge);
    }
}

static void in_random_jumps(void) {
    uint64_t random = 11;
    enum { BLOCKS = 40, STEPS = 5000 };
    void *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS] = {0};
    for (size_t step = 0; step < STEPS; step++) {
        size_t b = pattern_below(&random, BLOCKS);
        size_t size = 1 + pattern_below(&random, (size_t)1 << (4 + pattern_below(&random, 17)));
        blocks[b] = resized(blocks[b], sizes[b], size, b);
        sizes[b] = size;
    }
    for (size_t b = 0; b < BLOCKS; b++) {
        size_t mismatch = pattern_mismatch(blocks[b], sizes[b], b);
        EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed", mismatch, sizes[b]);
        free(blocks[b]);
    }
}

/* Two vectors grow in turn, so that neither can always extend into what follows it. */
static void in_a_ladder(void) {
    void *first = NULL;
    void *second = NULL;
    size_t size = 0;
    while (size < (12 << 20)) {
        size_t larger = size + size / 8 + 24;
        first = realloc(first, larger);
        second = realloc(second, larger);
        EXPECT(first != NULL && second != NULL, "realloc to %zu bytes failed", larger);
        /* Contents are checked over a window at each end: whole checks of each step would be quadratic. */
        size_t start = size > 4096 ? size - 4096 : 0;
        size_t mismatch = pattern_mismatch_from(first, start, size, 1);
        EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed while growing", mismatch, size);
        mismatch = pattern_mismatch_from(second, start, size, 2);
        EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed while growing", mismatch, size);
        pattern_fill(first, size, larger, 1);
        pattern_fill(second, size, larger, 2);
        size = larger;
    }
    EXPECT(pattern_mismatch(first, size, 1) == SIZE_MAX, "the first vector changed while growing");
    EXPECT(pattern_mismatch(second, size, 2) == SIZE_MAX, "the second vector changed while growing");
    free(first);
    free(second);
}

/* Copies of every length: the last bytes of an odd size are no whole word. */
static void to_the_last_byte(void) {
    enum { LONGEST = 2100 };
    for (size_t from = 1; from <= LONGEST; from += from < 64 ? 1 : 37) {
        for (size_t to = 1; to <= LONGEST; to += to < 64 ? 1 : 37) {
            void *block = malloc(from);
            EXPECT(block != NULL, "malloc(%zu) failed", from);
            pattern_fill(block, 0, from, from);
            free(resized(block, from, to, from));
        }
    }
    for (size_t size = 100003; size < (3 << 20); size = size * 2 + 1) {
        void *block = malloc(size);
        EXPECT(block != NULL, "malloc(%zu) failed", size);
        pattern_fill(block, 0, size, size);
        block = resized(block, size, size / 3 * 2 + 1, size);
        block = resized(block, size / 3 * 2 + 1, size / 9 | 1, size);
        free(resized(block, size / 9 | 1, size * 3, size));
    }
}

static void of_aligned_blocks(void) {
    for (size_t alignment = 32; alignment <= (1 << 20); alignment *= 4) {
        for (size_t factor = 1; factor <= 9; factor += 4) {
            size_t size = alignment * factor / 2 + 3;
            void *block = memalign(alignment, size);
            EXPECT(block != NULL, "memalign of %zu bytes failed", size);
            pattern_fill(block, 0, size, alignment);
            block = resized(block, size, size * 2, alignment);
            block = resized(block, size * 2, size / 2 + 1, alignment);
            free(block);
        }
    }
}

int main(void) {
    require_serving();
    across_every_edge();
    in_random_jumps();
    in_a_ladder();
    to_the_last_byte();
    of_aligned_blocks();
    return 0;
}
