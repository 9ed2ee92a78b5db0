/* Requests for nothing, as glibc answers them: malloc(0) and its kin give a block of its own that can be freed,
 * realloc(NULL, 0) is malloc(0), realloc(p, 0) frees p and gives NULL. */
#include <errno.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { MANY = 1000 };

static void *by_malloc(void) { return malloc(unseen_size(0)); }
static void *by_calloc_count(void) { return calloc(unseen_size(0), 8); }
static void *by_calloc_size(void) { return calloc(8, unseen_size(0)); }
static void *by_realloc(void) { return realloc(NULL, unseen_size(0)); }
static void *by_reallocarray(void) { return reallocarray(NULL, unseen_size(0), 8); }
static void *by_memalign(void) { return memalign(64, unseen_size(0)); }
static void *by_aligned_alloc(void) { return aligned_alloc(64, unseen_size(0)); }
static void *by_valloc(void) { return valloc(unseen_size(0)); }
static void *by_posix_memalign(void) {
    void *block = NULL;
    EXPECT(posix_memalign(&block, 64, unseen_size(0)) == 0, "posix_memalign of 0 bytes failed");
    return block;
}

static const struct {
    const char *name;
    void *(*allocate)(void);
} sources[] = {
    {"malloc(0)", by_malloc},
    {"calloc(0, 8)", by_calloc_count},
    {"calloc(8, 0)", by_calloc_size},
    {"realloc(NULL, 0)", by_realloc},
    {"reallocarray(NULL, 0, 8)", by_reallocarray},
    {"memalign(64, 0)", by_memalign},
    {"aligned_alloc(64, 0)", by_aligned_alloc},
    {"valloc(0)", by_valloc},
    {"posix_memalign of 0 bytes", by_posix_memalign},
};

static int by_address(const void *left, const void *right) {
    uintptr_t a = (uintptr_t)*(void *const *)left;
    uintptr_t b = (uintptr_t)*(void *const *)right;
    return a < b ? -1 : a > b;
}

int main(void) {
    require_serving();
    static void *blocks[MANY];
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
        for (size_t i = 0; i < MANY; i++) {
            blocks[i] = sources[s].allocate();
            EXPECT(blocks[i] != NULL, "%s gave NULL", sources[s].name);
        }
        qsort(blocks, MANY, sizeof *blocks, by_address);
        for (size_t i = 1; i < MANY; i++) {
            EXPECT(blocks[i] != blocks[i - 1], "%s gave %p twice", sources[s].name, blocks[i]);
        }
        for (size_t i = 0; i < MANY; i++) {
            free(blocks[i]);
        }
    }
    static const size_t freed_sizes[] = {1, 100, 5000, 100000, 1 << 20};
    for (size_t i = 0; i < sizeof freed_sizes / sizeof *freed_sizes; i++) {
        void *block = malloc(freed_sizes[i]);
        EXPECT(block != NULL, "malloc(%zu) failed", freed_sizes[i]);
        errno = 0;
        EXPECT(realloc(block, unseen_size(0)) == NULL, "realloc(p, 0) gave a block");
        EXPECT(errno == 0, "realloc(p, 0) freed, and set errno to %d", errno);
    }
    return 0;
}
