/* Address space is limited from the start, and a block with a neighbour behind it grows by realloc, again and again: there is never room for two of its
 * size, and its pages may lie in several mappings, of which some are huge.
 *
 *   walled_limit FROM-MIB TO-MIB      the limit is in force already */
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { MIB = 1 << 20, STEPS = 4, ROUNDS = 3 };

static char *grow(char *block, size_t had, size_t size) {
    char *grown = unseen(realloc(block, size));
    EXPECT(grown != NULL, "a block of %zu bytes does not grow to %zu", had, size);
    size_t mismatch = pattern_mismatch_from(grown, 0, had, 1);
    EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu has changed", mismatch, had);
    pattern_fill(grown, had, size, 1);
    return grown;
}

int main(int count, char **arguments) {
    EXPECT(count == 3, "usage: walled_limit FROM-MIB TO-MIB");
    require_serving();
    size_t from = strtoul(arguments[1], NULL, 10) * MIB, to = strtoul(arguments[2], NULL, 10) * MIB;
    for (int round = 0; round < ROUNDS; round++) {
        char *block = unseen(malloc(from)), *wall = unseen(malloc(MIB));
        EXPECT(block != NULL && wall != NULL, "no memory in round %d", round);
        memset(wall, 2, MIB);
        pattern_fill(block, 0, from, 1);
        size_t had = from;
        for (size_t step = 1; step <= STEPS; step++) {
            size_t size = from + (to - from) / STEPS * step;
            block = grow(block, had, size);
            had = size;
        }
        free(block);
        free(wall);
    }
    return 0;
}
