/* free never touches errno, on any of its paths (glibc since 2.33, POSIX 2024), and an allocation that succeeds does
 * not either: programs read errno after cleaning up. */
#include <errno.h>
#include <pthread.h>

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
            free(blocks[b]);
            check("free of many", sizes[i]);
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
    in_quantity();
    across_threads();
    one_by_one();
    return 0;
}
