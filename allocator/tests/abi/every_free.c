/* A pointer from any allocating function may be given to any function that frees or resizes, and holds what was
 * written into it until then. C23 restricts only the sized ones: free_sized takes what malloc, calloc and realloc
 * gave, free_aligned_sized what aligned_alloc gave, each with the size asked for. */
#include <stdbool.h>

#include "conventions.h"
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum origin { PLAIN, ALIGNED, OTHER };

struct source {
    const char *name;
    enum origin origin;
    void *(*allocate)(size_t alignment, size_t size);
};

static void *by_malloc(size_t alignment, size_t size) {
    (void)alignment;
    return malloc(size);
}

static void *by_calloc(size_t alignment, size_t size) {
    (void)alignment;
    return calloc(size, 1);
}

static void *by_realloc(size_t alignment, size_t size) {
    (void)alignment;
    return realloc(NULL, size);
}

static void *by_reallocarray(size_t alignment, size_t size) {
    (void)alignment;
    return reallocarray(NULL, 1, size);
}

static void *by_regrown(size_t alignment, size_t size) {
    (void)alignment;
    void *block = malloc(size / 2 + 1);
    return block == NULL ? NULL : realloc(block, size);
}

static void *by_aligned_alloc(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

static void *by_memalign(size_t alignment, size_t size) { return memalign(alignment, size); }

static void *by_posix_memalign(size_t alignment, size_t size) {
    void *block = NULL;
    return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static void *by_valloc(size_t alignment, size_t size) {
    (void)alignment;
    return valloc(size);
}

#ifdef __GLIBC__ /* musl has no pvalloc */
static void *by_pvalloc(size_t alignment, size_t size) {
    (void)alignment;
    return pvalloc(size);
}
#endif

static const struct source sources[] = {
    {"malloc", PLAIN, by_malloc},
    {"calloc", PLAIN, by_calloc},
    {"realloc", PLAIN, by_realloc},
    {"reallocarray", PLAIN, by_reallocarray},
    {"realloc of a smaller block", PLAIN, by_regrown},
    {"aligned_alloc", ALIGNED, by_aligned_alloc},
    {"memalign", OTHER, by_memalign},
    {"posix_memalign", OTHER, by_posix_memalign},
    {"valloc", OTHER, by_valloc},
#ifdef __GLIBC__
    {"pvalloc", OTHER, by_pvalloc},
#endif
};

struct sink {
    const char *name;
    bool (*takes)(enum origin origin);
    void (*release)(void *block, size_t alignment, size_t size);
};

static bool takes_any(enum origin origin) {
    (void)origin;
    return true;
}

static bool takes_plain(enum origin origin) { return origin == PLAIN; }

static bool takes_aligned(enum origin origin) { return origin == ALIGNED; }

static void by_free(void *block, size_t alignment, size_t size) {
    (void)alignment;
    (void)size;
    free(block);
}

static void by_realloc_to_zero(void *block, size_t alignment, size_t size) {
    (void)alignment;
    (void)size;
    take_resized_to_zero(realloc(block, unseen_size(0)), "realloc(p, 0)");
}

static void by_reallocarray_to_zero(void *block, size_t alignment, size_t size) {
    (void)alignment;
    (void)size;
    take_resized_to_zero(reallocarray(block, unseen_size(0), 8), "reallocarray(p, 0, 8)");
}

static void by_growing(void *block, size_t alignment, size_t size) {
    (void)alignment;
    unsigned char *grown = realloc(block, size * 3 + 1);
    EXPECT(grown != NULL, "realloc to %zu bytes failed", size * 3 + 1);
    size_t mismatch = pattern_mismatch(grown, size, size);
    EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed while growing", mismatch, size);
    free(grown);
}

static void by_shrinking(void *block, size_t alignment, size_t size) {
    (void)alignment;
    unsigned char *shrunk = realloc(block, size / 3 + 1);
    EXPECT(shrunk != NULL, "realloc to %zu bytes failed", size / 3 + 1);
    size_t kept = size / 3 + 1 < size ? size / 3 + 1 : size;
    size_t mismatch = pattern_mismatch(shrunk, kept, size);
    EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed while shrinking", mismatch, size);
    free(shrunk);
}

static void by_free_sized(void *block, size_t alignment, size_t size) {
    (void)alignment;
    free_sized(block, size);
}

static void by_free_aligned_sized(void *block, size_t alignment, size_t size) {
    free_aligned_sized(block, alignment, size);
}

static const struct sink sinks[] = {
    {"free", takes_any, by_free},
    {"realloc to 0", takes_any, by_realloc_to_zero},
    {"reallocarray to 0", takes_any, by_reallocarray_to_zero},
    {"realloc to more", takes_any, by_growing},
    {"realloc to less", takes_any, by_shrinking},
    {"free_sized", takes_plain, by_free_sized},
    {"free_aligned_sized", takes_aligned, by_free_aligned_sized},
};

/* Below, at and above each edge between kinds of block: slab classes and whole spans. Own mappings have a test of
 * their own, rules/huge.c: filling them takes long. */
static const size_t sizes[] = {1,     8,     16,    17,     64,     128,    129,    1000,   4096,   5000,
                               32768, 65536, 65537, 200000, 262144, 262145, 300000, 655360, 1048576};

static const size_t alignments[] = {16, 64, 4096, 65536, 1 << 20};

int main(void) {
    require_serving();
    enum { TOGETHER = 2 };
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
        for (size_t k = 0; k < sizeof sinks / sizeof *sinks; k++) {
            if (!sinks[k].takes(sources[s].origin)) {
                continue;
            }
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
                    size_t size = sizes[i];
                    size_t alignment = alignments[a];
                    bool aligned = sources[s].allocate == by_aligned_alloc || sources[s].origin == OTHER;
                    if ((!aligned && a > 0) || (size > (1 << 18) && a > 1)) {
                        continue;
                    }
                    void *blocks[TOGETHER];
                    for (size_t b = 0; b < TOGETHER; b++) {
                        blocks[b] = sources[s].allocate(alignment, size);
                        EXPECT(blocks[b] != NULL, "%s of %zu bytes failed", sources[s].name, size);
                        EXPECT(malloc_usable_size(blocks[b]) >= size, "%s of %zu bytes gave %zu", sources[s].name, size,
                               malloc_usable_size(blocks[b]));
                        pattern_fill(blocks[b], 0, size, size);
                    }
                    for (size_t b = 0; b < TOGETHER; b++) {
                        size_t mismatch = pattern_mismatch(blocks[b], size, size);
                        EXPECT(mismatch == SIZE_MAX, "%s of %zu bytes: byte %zu changed before %s", sources[s].name,
                               size, mismatch, sinks[k].name);
                        sinks[k].release(blocks[b], alignment, size);
                    }
                }
            }
        }
    }
    /* Freeing nothing is legal everywhere. */
    free(NULL);
    free_sized(NULL, 8);
    free_aligned_sized(NULL, 64, 64);
    return 0;
}
