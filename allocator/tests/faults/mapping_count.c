/* The kernel allows a process some 65,000 mappings. When the program has used them all, splitting or making a mapping
 * fails with ENOMEM: the heap must not stop the program for it, nor lose what it holds, and recovers when there are
 * mappings again. */
#include <errno.h>
#include <sys/mman.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { BLOCKS = 2000, PAGES = 140000 };

static void *blocks[BLOCKS];

static size_t size_of(size_t b) { return b % 100 == 0 ? (1 << 20) + b * 100 : b % 10 == 0 ? 300000 : b * 7 + 1; }

static size_t allocate_and_free(uint64_t seed) {
    size_t refused = 0;
    for (size_t i = 0; i < 3 * BLOCKS; i++) {
        size_t b = pattern_below(&seed, BLOCKS);
        if (blocks[b] != NULL) {
            size_t mismatch = pattern_mismatch(blocks[b], size_of(b), b);
            EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed", mismatch, size_of(b));
            free(blocks[b]);
        }
        errno = 0;
        blocks[b] = pattern_below(&seed, 2) == 0 ? malloc(size_of(b)) : calloc(1, size_of(b));
        if (blocks[b] == NULL) {
            EXPECT(errno == ENOMEM, "malloc(%zu) failed with errno %d", size_of(b), errno);
            refused++;
            continue;
        }
        pattern_fill(blocks[b], 0, size_of(b), b);
        if (i % 500 == 0) {
            malloc_trim(0);
        }
    }
    return refused;
}

int main(void) {
    require_serving();
    EXPECT(allocate_and_free(1) == 0, "malloc failed although nothing is short");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *own = mmap(NULL, PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(own != MAP_FAILED, "no mapping");
    size_t at = 0;
    /* Every other page readable: each a mapping of its own. */
    while (at < PAGES && mprotect(own + at * page, page, PROT_READ) == 0) {
        at += 2;
    }
    if (at >= PAGES) {
        expect_skip("this kernel allows more than %d mappings (vm.max_map_count)", PAGES);
    }
    for (uint64_t seed = 2; seed < 6; seed++) {
        (void)allocate_and_free(seed);
    }
    EXPECT(munmap(own, PAGES * page) == 0, "munmap failed");
    for (size_t b = 0; b < BLOCKS; b++) {
        free(blocks[b]);
        blocks[b] = NULL;
    }
    EXPECT(allocate_and_free(7) == 0, "malloc still fails although there are mappings again");
    return 0;
}
