/* Sizes that cannot be: NULL and ENOMEM, from every entry point, however the size comes about; and realloc leaves the
 * old block as it was. */
#include <errno.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

static void *by_malloc(size_t size) { return malloc(size); }
static void *by_calloc(size_t size) { return calloc(1, size); }
static void *by_calloc_swapped(size_t size) { return calloc(size, 1); }
static void *by_realloc(size_t size) { return realloc(NULL, size); }
static void *by_reallocarray(size_t size) { return reallocarray(NULL, size, 1); }
static void *by_aligned_alloc(size_t size) { return aligned_alloc(64, size); }
static void *by_memalign(size_t size) { return memalign(4096, size); }
static void *by_memalign_large(size_t size) { return memalign(1 << 21, size); }
static void *by_valloc(size_t size) { return valloc(size); }
#ifdef __GLIBC__ /* musl has no pvalloc */
static void *by_pvalloc(size_t size) { return pvalloc(size); }
#endif
static void *by_posix_memalign(size_t size) {
    void *block = (void *)&errno;
    int result = posix_memalign(&block, 64, size);
    /* It leaves the pointer alone and reports by its result. glibc tells it in errno too, and programs rely on that. */
    EXPECT(result == ENOMEM, "posix_memalign of %zu bytes returned %d", size, result);
    EXPECT(block == (void *)&errno, "posix_memalign changed the pointer when it failed");
    return NULL;
}

static const struct {
    const char *name;
    void *(*allocate)(size_t size);
} sources[] = {
    {"malloc", by_malloc},
    {"calloc(1, n)", by_calloc},
    {"calloc(n, 1)", by_calloc_swapped},
    {"realloc(NULL, n)", by_realloc},
    {"reallocarray(NULL, n, 1)", by_reallocarray},
    {"aligned_alloc", by_aligned_alloc},
    {"memalign to 4096", by_memalign},
    {"memalign to 2 MiB", by_memalign_large},
    {"valloc", by_valloc},
#ifdef __GLIBC__
    {"pvalloc", by_pvalloc},
#endif
    {"posix_memalign", by_posix_memalign},
};

/* No object is larger than PTRDIFF_MAX; near SIZE_MAX, rounding up wraps around to small sizes. */
static const size_t impossible[] = {
    SIZE_MAX,         SIZE_MAX - 1,     SIZE_MAX - 15,    SIZE_MAX - 16,        SIZE_MAX - 4095,
    SIZE_MAX - 4096,  SIZE_MAX - 65535, SIZE_MAX - 65536, SIZE_MAX - (1 << 21), SIZE_MAX / 2 + 1,
    SIZE_MAX / 2 + 2, PTRDIFF_MAX,      PTRDIFF_MAX - 1,  PTRDIFF_MAX - 65535,  PTRDIFF_MAX - (1 << 21),
    PTRDIFF_MAX / 2,  (size_t)1 << 62,  (size_t)1 << 56,  (size_t)1 << 48,      ((size_t)1 << 47) + 1,
};

static const struct {
    size_t count;
    size_t size;
} products[] = {
    {SIZE_MAX, 2},
    {2, SIZE_MAX},
    {SIZE_MAX, SIZE_MAX},
    {(size_t)1 << 32, (size_t)1 << 32},
    {((size_t)1 << 32) + 1, (size_t)1 << 32},
    {SIZE_MAX / 2 + 1, 2},
    {SIZE_MAX / 3 + 1, 3},
    {SIZE_MAX / 16 + 2, 16},
    {(size_t)1 << 63, 2},
    {3, (size_t)1 << 63},
};

/* Sizes and alignments that an address space could hold: a block, or NULL and ENOMEM, and the heap goes on. */
static void barely_possible(void) {
    for (size_t large = (size_t)1 << 40; large < (size_t)1 << 47; large *= 2) {
        for (size_t i = 0; i < 3; i++) {
            errno = 0;
            void *block = i == 0 ? malloc(unseen_size(large)) : memalign(large, i == 1 ? 100 : 100000);
            EXPECT(block != NULL || errno == ENOMEM, "%zu bytes or alignment left errno %d", large, errno);
            free(unseen(block));
        }
        void *next = malloc(100000);
        EXPECT(next != NULL, "no block after one of %zu bytes", large);
        free(next);
    }
}

int main(void) {
    require_serving();
    barely_possible();
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
        for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
            errno = 0;
            void *block = sources[s].allocate(unseen_size(impossible[i]));
            EXPECT(block == NULL, "%s of %zu bytes gave %p", sources[s].name, impossible[i], block);
            EXPECT(errno == ENOMEM, "%s of %zu bytes left errno %d", sources[s].name, impossible[i], errno);
        }
    }
    static const size_t kept_sizes[] = {16, 1000, 50000, 300000, 5 << 20};
    for (size_t k = 0; k < sizeof kept_sizes / sizeof *kept_sizes; k++) {
        size_t size = kept_sizes[k];
        void *kept = malloc(size);
        EXPECT(kept != NULL, "malloc(%zu) failed", size);
        pattern_fill(kept, 0, size, size);
        for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
            errno = 0;
            EXPECT(unseen(realloc(unseen(kept), unseen_size(impossible[i]))) == NULL, "realloc to %zu gave a block",
                   impossible[i]);
            EXPECT(errno == ENOMEM, "realloc to %zu left errno %d", impossible[i], errno);
        }
        for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
            size_t count = unseen_size(products[i].count);
            size_t each = unseen_size(products[i].size);
            errno = 0;
            EXPECT(unseen(calloc(count, each)) == NULL, "calloc(%zu, %zu) gave a block", count, each);
            EXPECT(errno == ENOMEM, "calloc(%zu, %zu) left errno %d", count, each, errno);
            errno = 0;
            EXPECT(unseen(reallocarray(unseen(kept), count, each)) == NULL, "reallocarray(p, %zu, %zu) gave one", count,
                   each);
            EXPECT(errno == ENOMEM, "reallocarray(p, %zu, %zu) left errno %d", count, each, errno);
        }
        size_t mismatch = pattern_mismatch(kept, size, size);
        EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed although nothing was reallocated", mismatch, size);
        free(kept);
    }
    return 0;
}
