/* realloc_within_limit MIB: blocks of so many mebibytes, neighbours of others, grow, each while address space has room for what it grows by and
 * not for a second block. realloc finds a way, nothing is lost, and all of it can be had again afterwards. */
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum { BLOCKS = 6, NEIGHBOUR = 1 << 20, SLACK = 2 << 20 };

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: realloc_within_limit MIB");
    size_t size = strtoul(arguments[1], NULL, 10) << 20, more = size / 8;
    char *block[BLOCKS], *neighbour[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(size);
        neighbour[i] = malloc(NEIGHBOUR);
        EXPECT(block[i] != NULL && neighbour[i] != NULL, "no blocks");
        memset(block[i], (int)i + 1, size);
        memset(neighbour[i], (int)i + 65, NEIGHBOUR);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        struct rlimit limit = {address_space_bytes() + more + SLACK, RLIM_INFINITY};
        EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
        char *grown = realloc(block[i], size + more);
        EXPECT(grown != NULL, "block %zu of %zu bytes does not grow by %zu", i, size, more);
        block[i] = grown;
        memset(grown + size, (int)i + 1, more);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t at = 0; at < size + more; at++) {
            EXPECT(block[i][at] == (char)(i + 1), "byte %zu of block %zu has changed", at, i);
        }
        for (size_t at = 0; at < NEIGHBOUR; at++) {
            EXPECT(neighbour[i][at] == (char)(i + 65), "byte %zu of neighbour %zu has changed", at, i);
        }
        free(block[i]);
        free(neighbour[i]);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "block %zu cannot be had again", i);
        memset(block[i], 1, size);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    return 0;
}
