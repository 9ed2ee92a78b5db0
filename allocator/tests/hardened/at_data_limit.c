/* A hardened program that has come to its limit on data, and has freed all again: it has as much as before, also in one piece. What nobody may touch does not
 * count, so that more is mapped by then than may be accessible.
 *
 *   at_data_limit SIZE ...     it fills itself with blocks of each size in turn */
#include <malloc.h>
#include <sys/resource.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { LIMIT = 64 << 20, BLOCKS_MOST = 4 * LIMIT / 100, LARGE = 2000000 };

/* The bytes of all the blocks of a size that can be had at once. */
static size_t fill_and_free(size_t size) {
    void **last = NULL;
    size_t count = 0;
    for (void **block; count < BLOCKS_MOST && (block = unseen(malloc(size))) != NULL; count++) {
        *block = last;
        last = block;
    }
    while (last != NULL) {
        void **next = *last;
        free(last);
        last = next;
    }
    return count * size;
}

int main(int count, char **arguments) {
    require_serving();
    struct rlimit limit = {LIMIT, LIMIT};
    EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0, "no limit can be set");
    size_t least = SIZE_MAX;
    for (int i = 1; i < 2 * count - 1; i++) { /* twice */
        size_t size = strtoul(arguments[(i - 1) % (count - 1) + 1], NULL, 10), had = fill_and_free(size);
        if (had > 2 * (size_t)LIMIT) {
            expect_skip("the limit on data is none here");
        }
        EXPECT(had > LIMIT / 2, "filled with %zu bytes each, %zu in all", size, had);
        least = had < least ? had : least;
        void *large = unseen(malloc(LARGE));
        EXPECT(large != NULL, "filled with %zu bytes each, and all freed: %d are not to be had", size, (int)LARGE);
        free(large);
    }
    void *half = unseen(malloc(least / 2));
    EXPECT(half != NULL, "of %zu bytes that were had at once half are not to be had in one piece", least);
    free(half);
    return 0;
}
