/* Alignment as glibc and POSIX document it: every malloc to 16 bytes, every aligned request to what was asked, over
 * the whole matrix of alignments to 2 MiB and sizes to twice the alignment; which requests are refused, and how. */
#include <errno.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

static void check(const char *what, void *block, size_t alignment, size_t size) {
    EXPECT(block != NULL, "%s of %zu bytes aligned to %zu failed with errno %d", what, size, alignment, errno);
    EXPECT((uintptr_t)block % alignment == 0, "%s of %zu bytes aligned to %zu gave %p", what, size, alignment, block);
    EXPECT(malloc_usable_size(block) >= size, "%s of %zu bytes aligned to %zu holds %zu", what, size, alignment,
           malloc_usable_size(block));
}

/* Writes the first and last bytes, where a neighbour's would be if the block were too short. */
static void mark(void *block, size_t size, unsigned char value) {
    unsigned char *bytes = block;
    if (size > 0) {
        bytes[0] = value;
        bytes[size / 2] = value;
        bytes[size - 1] = value;
    }
}

static void check_mark(const void *block, size_t size, unsigned char value) {
    const unsigned char *bytes = block;
    EXPECT(size == 0 || (bytes[0] == value && bytes[size / 2] == value && bytes[size - 1] == value),
           "a block of %zu bytes changed while its neighbours were written", size);
}

static void matrix(void) {
    enum { SIZES = 9, TOGETHER = 3 };
    for (size_t alignment = 1; alignment <= (1 << 21); alignment *= 2) {
        const size_t sizes[SIZES] = {0,
                                     1,
                                     alignment / 2,
                                     alignment - 1,
                                     alignment,
                                     alignment + 1,
                                     alignment + alignment / 2,
                                     2 * alignment - 1,
                                     2 * alignment};
        for (size_t i = 0; i < SIZES; i++) {
            size_t size = sizes[i];
            void *blocks[4 * TOGETHER];
            size_t count = 0;
            for (size_t b = 0; b < TOGETHER; b++) {
                blocks[count] = memalign(alignment, size);
                check("memalign", blocks[count++], alignment, size);
                blocks[count] = aligned_alloc(alignment, size);
                check("aligned_alloc", blocks[count++], alignment, size);
                if (alignment >= sizeof(void *)) {
                    int result = posix_memalign(&blocks[count], alignment, size);
                    EXPECT(result == 0, "posix_memalign of %zu bytes aligned to %zu returned %d", size, alignment,
                           result);
                    check("posix_memalign", blocks[count++], alignment, size);
                }
                blocks[count] = malloc(size);
                check("malloc", blocks[count++], 16, size);
            }
            for (size_t b = 0; b < count; b++) {
                mark(blocks[b], size, (unsigned char)(b + 1));
            }
            for (size_t b = 0; b < count; b++) {
                check_mark(blocks[b], size, (unsigned char)(b + 1));
                free(blocks[b]);
            }
        }
    }
}

static void many_sizes_per_alignment(void) {
    uint64_t random = 7;
    for (size_t alignment = 8; alignment <= 65536; alignment *= 2) {
        for (size_t i = 0; i < 200; i++) {
            size_t size = pattern_below(&random, 3 * alignment + 1);
            void *block = memalign(alignment, size);
            check("memalign", block, alignment, size);
            memset(block, 0x5a, malloc_usable_size(block));
            free(block);
        }
    }
}

static void refused(void) {
    /* posix_memalign takes powers of two that are multiples of a pointer's size, and nothing else. */
    static const size_t not_posix[] = {0, 1, 2, 4, 7, 12, 24, 100, 4097, SIZE_MAX, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof not_posix / sizeof *not_posix; i++) {
        void *block = &random;
        int result = posix_memalign(&block, unseen_size(not_posix[i]), 64);
        EXPECT(result == EINVAL, "posix_memalign aligned to %zu returned %d", not_posix[i], result);
        EXPECT(block == (void *)&random, "posix_memalign refused %zu and changed the pointer", not_posix[i]);
    }
    /* memalign rounds any other alignment up to a power of two, as glibc does, while there is one. */
    static const size_t rounded[][2] = {{0, 1}, {3, 4}, {17, 32}, {24, 32}, {100, 128}, {4097, 8192}, {65537, 131072}};
    for (size_t i = 0; i < sizeof rounded / sizeof *rounded; i++) {
        void *block = memalign(unseen_size(rounded[i][0]), 100);
        check("memalign to no power of two", block, rounded[i][1], 100);
        free(block);
    }
    static const size_t unreachable[] = {SIZE_MAX, SIZE_MAX / 2 + 2, SIZE_MAX - 4095};
    for (size_t i = 0; i < sizeof unreachable / sizeof *unreachable; i++) {
        errno = 0;
        EXPECT(unseen(memalign(unseen_size(unreachable[i]), 100)) == NULL, "memalign to %zu gave a block",
               unreachable[i]);
        EXPECT(errno == EINVAL, "memalign to %zu left errno %d", unreachable[i], errno);
    }
    /* A power of two that no address space holds is a matter of memory. */
    errno = 0;
    EXPECT(unseen(memalign(unseen_size((size_t)1 << 62), 100)) == NULL, "memalign to 2^62 gave a block");
    EXPECT(errno == ENOMEM, "memalign to 2^62 left errno %d", errno);
}

static void pages(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 65537, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = valloc(sizes[i]);
        check("valloc", block, page, sizes[i]);
        free(block);
#ifdef __GLIBC__ /* musl has no pvalloc, which gives whole pages */
        block = pvalloc(sizes[i]);
        check("pvalloc", block, page, (sizes[i] + page - 1) / page * page);
        free(block);
#endif
    }
}

static void plain(void) {
    for (size_t size = 0; size <= 4096; size++) {
        void *block = malloc(size);
        check("malloc", block, 16, size);
        void *zeroed = calloc(1, size);
        check("calloc", zeroed, 16, size);
        zeroed = realloc(zeroed, size + 1);
        check("realloc", zeroed, 16, size + 1);
        free(block);
        free(zeroed);
    }
}

int main(void) {
    require_serving();
    plain();
    matrix();
    many_sizes_per_alignment();
    pages();
    refused();
    return 0;
}
