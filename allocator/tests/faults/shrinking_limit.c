/* The limit on data falls below what the program uses while it runs, and rises again: meanwhile requests are served
 * from what was freed or give NULL and ENOMEM, and afterwards all are served. */
#include <errno.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { BLOCKS = 3000, SIZE = 10000 };

static void *blocks[BLOCKS];

static void set_limit(rlim_t bytes) {
    struct rlimit limit;
    EXPECT(getrlimit(RLIMIT_DATA, &limit) == 0, "there is no limit on data");
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0, "the limit was refused");
}

static void check(size_t from, size_t to) {
    for (size_t b = from; b < to; b++) {
        EXPECT(pattern_mismatch(blocks[b], SIZE, b) == SIZE_MAX, "block %zu changed", b);
    }
}

int main(void) {
    require_serving();
    for (size_t b = 0; b < BLOCKS; b++) {
        blocks[b] = malloc(SIZE);
        EXPECT(blocks[b] != NULL, "malloc failed");
        pattern_fill(blocks[b], 0, SIZE, b);
    }
    set_limit(1 << 20);
    /* More than the heap can have in store: some request must be refused. */
    enum { LARGE = 64 << 20, LARGES = 64 };
    void *large[LARGES];
    size_t served = 0;
    for (; served < LARGES; served++) {
        errno = 0;
        large[served] = malloc(LARGE);
        if (large[served] == NULL) {
            EXPECT(errno == ENOMEM, "malloc failed with errno %d", errno);
            break;
        }
    }
    EXPECT(served < LARGES, "4 GiB were served under a limit of 1 MiB");
    check(0, BLOCKS);
    /* Blocks that were freed can be had again without the kernel. */
    for (size_t b = 0; b < BLOCKS; b += 2) {
        free(blocks[b]);
    }
    for (size_t b = 0; b < BLOCKS; b += 2) {
        blocks[b] = malloc(SIZE);
        EXPECT(blocks[b] != NULL, "malloc failed although as many blocks of that size were free");
        pattern_fill(blocks[b], 0, SIZE, b);
    }
    check(0, BLOCKS);
    for (size_t i = 0; i < served; i++) {
        free(large[i]);
    }
    set_limit(RLIM_INFINITY);
    for (size_t i = 0; i < 4; i++) {
        large[i] = malloc(LARGE);
        EXPECT(large[i] != NULL, "malloc still fails after the limit has risen");
        memset(large[i], 1, 1 << 20);
    }
    for (size_t i = 0; i < 4; i++) {
        free(large[i]);
    }
    check(0, BLOCKS);
    for (size_t b = 0; b < BLOCKS; b++) {
        free(blocks[b]);
    }
    return 0;
}
