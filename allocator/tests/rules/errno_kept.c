/* free never touches errno, on any of its paths (glibc since 2.33, POSIX 2024), and an allocation that succeeds does
 * not either: programs read errno after cleaning up. So does whatever else allocates, resizes or frees; operator delete has
 * abi/operators.cpp. */
#include <errno.h>
#include <pthread.h>

#include "conventions.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

static const int sentinel = 12345;

static void check(const char *what, size_t size) {
    EXPECT(errno == sentinel, "%s (%zu bytes) changed errno to %d", what, size, errno);
}

static const size_t sizes[] = {0,      1,      16,      100,     1000,     5000,      40000,          100000,
                               262144, 262145, 1 << 20, 8 << 20, 64 << 20, 300 << 20, (size_t)1 << 30};

enum { MANY = 400 };

static void one_by_one(void) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        errno = sentinel;
        void *block = malloc(size);
        EXPECT(block != NULL, "malloc(%zu) failed", size);
        check("malloc", size);
        block = realloc(block, size + size / 2 + 1);
        EXPECT(block != NULL, "realloc of %zu bytes failed", size);
        check("realloc to more", size);
        block = realloc(block, size / 4 + 1);
        EXPECT(block != NULL, "realloc of %zu bytes failed", size);
        check("realloc to less", size);
        free(block);
        check("free", size);
        block = calloc(1, size);
        EXPECT(block != NULL, "calloc(%zu) failed", size);
        check("calloc", size);
        free(block);
        check("free", size);
        block = memalign(4096, size);
        EXPECT(block != NULL, "memalign(%zu) failed", size);
        check("memalign", size);
        (void)malloc_usable_size(block);
        check("malloc_usable_size", size);
        free(block);
        check("free", size);
    }
    free(NULL);
    check("free(NULL)", 0);
}

/* The other entries, and how each block may be freed by C23. */
static void by_other_entries(void) {
    enum { ALIGNMENT = 128 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        errno = sentinel;
        void *block = unseen(malloc(size));
        free_sized(block, size);
        check("free_sized", size);
        block = calloc(size, 1);
        free_sized(block, size);
        check("calloc and free_sized", size);
        block = aligned_alloc(ALIGNMENT, size);
        EXPECT(block != NULL, "aligned_alloc of %zu bytes failed", size);
        check("aligned_alloc", size);
        free_aligned_sized(block, ALIGNMENT, size);
        check("free_aligned_sized", size);
        EXPECT(posix_memalign(&block, ALIGNMENT, size) == 0, "posix_memalign of %zu bytes failed", size);
        check("posix_memalign", size);
        free(block);
        check("free after posix_memalign", size);
        block = valloc(size);
        EXPECT(block != NULL, "valloc(%zu) failed", size);
        check("valloc", size);
        block = reallocarray(block, size / 8 + 1, 12);
        EXPECT(block != NULL, "reallocarray of %zu bytes failed", size);
        check("reallocarray to more", size);
        block = reallocarray(block, size / 16 + 1, 3);
        EXPECT(block != NULL, "reallocarray of %zu bytes failed", size);
        check("reallocarray to less", size);
        take_resized_to_zero(reallocarray(block, unseen_size(0), 3), "reallocarray(p, 0, 3)");
        check("reallocarray to nothing", size);
        take_resized_to_zero(realloc(unseen(malloc(size)), unseen_size(0)), "realloc(p, 0)");
        check("realloc to nothing", size);
    }
    free_sized(NULL, 8);
    check("free_sized(NULL)", 8);
    free_aligned_sized(NULL, ALIGNMENT, 8);
    check("free_aligned_sized(NULL)", 8);
}

/* Enough frees to overflow whatever is cached, so that the paths behind it run too. */
static void in_quantity(void) {
    static void *blocks[MANY];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= (1 << 20); i++) {
        for (size_t b = 0; b < MANY; b++) {
            blocks[b] = malloc(sizes[i]);
            EXPECT(blocks[b] != NULL, "malloc(%zu) failed", sizes[i]);
        }
        for (size_t b = 0; b < MANY; b++) {
            errno = sentinel;
            if (b % 2 == 0) {
                free(blocks[b]);
            } else {
                free_sized(blocks[b], sizes[i]);
            }
            check("free of many", sizes[i]);
        }
        for (size_t b = 0; b < MANY; b++) {
            errno = sentinel;
            EXPECT(posix_memalign(&blocks[b], 256, sizes[i]) == 0, "posix_memalign of %zu bytes failed", sizes[i]);
            check("posix_memalign of many", sizes[i]);
        }
        for (size_t b = 0; b < MANY; b++) {
            free(blocks[b]);
            blocks[b] = aligned_alloc(256, sizes[i]);
        }
        for (size_t b = 0; b < MANY; b++) {
            free_aligned_sized(blocks[b], 256, sizes[i]);
            check("free_aligned_sized of many", sizes[i]);
        }
    }
    errno = sentinel;
    (void)freestone_purge();
    errno = sentinel;
    free(malloc(10));
    check("malloc and free after freestone_purge", 10);
}

static void *free_elsewhere(void *shared) {
    void **blocks = shared;
    for (size_t b = 0; b < MANY; b++) {
        errno = sentinel;
        free(blocks[b]);
        check("free in another thread", 0);
    }
    return NULL;
}

static void across_threads(void) {
    static void *blocks[MANY];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= (1 << 20); i++) {
        for (size_t b = 0; b < MANY; b++) {
            blocks[b] = malloc(sizes[i]);
            EXPECT(blocks[b] != NULL, "malloc(%zu) failed", sizes[i]);
        }
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, free_elsewhere, blocks) == 0, "no thread");
        pthread_join(thread, NULL);
    }
}

int main(void) {
    require_serving();
    one_by_one();
    by_other_entries();
    in_quantity();
    across_threads();
    one_by_one();
    return 0;
}
