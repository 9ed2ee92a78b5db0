/* Blocks of one size use a limit up, and all but every so many are freed: blocks of another size find room in the holes.
 *
 *   holes_at_limit address-space | data | own FIRST KEEP THEN ALIGNMENT PERCENT [trimmed]
 *
 * own: limit_mib. trimmed: free pages are purged before. One of KEEP blocks of FIRST bytes stays; then blocks of THEN bytes, aligned so, are had for PERCENT of what was freed. They are as
 * any others: some are freed, and had again. */
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "status_limit.h"

__attribute__((weak)) int malloc_trim(size_t kept); /* musl has none */

enum { MORE = 40 << 20, MOST = MORE / 32 };

static struct {
    unsigned char *block[MOST];
    size_t count, size;
} kept, had;

static unsigned char *filled(size_t alignment, size_t size) {
    unsigned char *block = unseen(alignment > 16 ? aligned_alloc(alignment, size) : malloc(size));
    if (block != NULL) {
        EXPECT((uintptr_t)block % alignment == 0, "%p is not aligned to %zu", (void *)block, alignment);
        pattern_fill(block, 0, size, (uintptr_t)block);
    }
    return block;
}

static void release(unsigned char *block, size_t size) {
    EXPECT(pattern_mismatch(block, size, (uintptr_t)block) == SIZE_MAX, "block %p has changed", (void *)block);
    free(block);
}

static void take_all(size_t alignment) {
    unsigned char *block;
    while (had.count < MOST && (block = filled(alignment, had.size)) != NULL) {
        had.block[had.count++] = block;
    }
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count >= 7, "usage: holes_at_limit address-space|data|own FIRST KEEP THEN ALIGNMENT PERCENT [trimmed]");
    size_t keep = strtoul(arguments[3], NULL, 10), alignment = strtoul(arguments[5], NULL, 10), freed = 0;
    size_t percent = strtoul(arguments[6], NULL, 10);
    kept.size = strtoul(arguments[2], NULL, 10);
    had.size = strtoul(arguments[4], NULL, 10);
    free(unseen(malloc(kept.size)));
    if (strcmp(arguments[1], "own") != 0) {
        bool data = strcmp(arguments[1], "data") == 0;
        set_limit(data ? RLIMIT_DATA : RLIMIT_AS, data ? "VmData:" : "VmSize:", MORE);
    }
    while (kept.count < MOST && (kept.block[kept.count] = filled(16, kept.size)) != NULL) {
        kept.count++;
    }
    EXPECT(kept.count < MOST && kept.count * kept.size > MORE / 4, "%zu blocks of %zu", kept.count, kept.size);
    for (size_t i = 0; i < kept.count; i++) {
        if (i % keep != 0) {
            release(kept.block[i], kept.size);
            freed += kept.size;
        }
    }
    if (count > 7 && malloc_trim != NULL) {
        (void)malloc_trim(0);
    }
    take_all(alignment);
    size_t first = had.count;
    EXPECT(first * had.size >= freed / 100 * percent, "%zu bytes in blocks of %zu where %zu were freed",
           first * had.size, had.size, freed);
    for (size_t i = 0; i < first / 2; i++) {
        release(had.block[--had.count], had.size);
    }
    take_all(alignment);
    EXPECT(had.count >= first - first / 16, "%zu blocks of %zu again, and there were %zu", had.count, had.size, first);
    for (size_t i = 0; i < had.count; i++) {
        release(had.block[i], had.size);
    }
    for (size_t i = 0; i < kept.count; i += keep) {
        release(kept.block[i], kept.size);
    }
    return 0;
}
