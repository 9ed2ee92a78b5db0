/* A program lives at its limit of address space, as caches do that evict when malloc returns NULL: to be refused costs it little, however often it
 * asks, and when it has freed a third it goes on. Told by how often it sleeps: it once did for a millisecond at each. Of what it has freed half at
 * least serves smaller blocks and aligned ones, whatever was there before.
 *
 *   full_limit      the limit is in force already */
#include <errno.h>
#include <malloc.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { REFUSED = 3000, AFTERWARDS = 20000, BLOCKS_MOST = 1 << 20 };

static void *block[BLOCKS_MOST];

static long sleeps(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0, "errno %d", errno);
    return usage.ru_nvcsw;
}

/* Frees one block in `step` from `first` on; returns how many of them have room for one of the size, where each of their kind is aligned. */
static size_t free_some(size_t blocks, size_t first, size_t step, size_t size, size_t alignment) {
    size_t fit = 0;
    for (size_t i = first; i < blocks; i += step) {
        size_t usable = malloc_usable_size(block[i]);
        fit += usable >= size && usable % alignment == 0;
        free(block[i]);
        block[i] = NULL;
    }
    return fit;
}

/* Where half of each slab is held: none of them becomes another class's. */
static void expect_half(size_t blocks, size_t first, size_t size, size_t alignment) {
    size_t fit = free_some(blocks, first, 6, size, alignment), had = 0;
    while (had < fit / 2 && unseen(alignment == 1 ? malloc(size) : aligned_alloc(alignment, size)) != NULL) {
        had++;
    }
    EXPECT(fit > 1000 && had == fit / 2, "%zu blocks were freed that do for %zu bytes aligned to %zu, and %zu are had",
           fit, size, alignment, had);
}

int main(void) {
    require_serving();
    size_t blocks = 0;
    while (blocks < BLOCKS_MOST && (block[blocks] = unseen(malloc(16 + blocks * 7919 % 3000))) != NULL) {
        blocks++;
    }
    EXPECT(blocks > 1000 && blocks < BLOCKS_MOST, "%zu blocks were had", blocks);
    long before = sleeps();
    for (size_t i = 0; i < REFUSED; i++) {
        EXPECT(unseen(malloc(5000)) == NULL && errno == ENOMEM, "the limit was reached, and 5000 bytes are had");
    }
    EXPECT(sleeps() - before < REFUSED / 10, "%d requests are refused, in %ld sleeps", REFUSED, sleeps() - before);
    (void)free_some(blocks, 0, 3, 1, 1);
    size_t had = 0;
    for (size_t i = 0; i < AFTERWARDS; i++) {
        had += unseen(malloc(3000 + i % 3 * 900)) != NULL;
    }
    EXPECT(had > 0, "a third of %zu blocks was freed, and nothing is had", blocks);
    expect_half(blocks, 1, 1000, 1);
    expect_half(blocks, 4, 512, 512);
    return 0;
}
