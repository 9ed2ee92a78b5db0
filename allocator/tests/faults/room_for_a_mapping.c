/* Address space is limited, and was full of small blocks that are free again: a block so large that it has a mapping of its own finds
 * room all the same.
 *
 *   room_for_a_mapping SMALL-MIB LARGE-MIB      the limit is in force already */
#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { BYTES = 10000 };

int main(int count, char **arguments) {
    EXPECT(count == 3, "usage: room_for_a_mapping SMALL-MIB LARGE-MIB");
    require_serving();
    size_t small = strtoul(arguments[1], NULL, 10) << 20, large = strtoul(arguments[2], NULL, 10) << 20;
    void **all = NULL;
    for (size_t taken = 0; taken < small; taken += BYTES) {
        void **block = unseen(malloc(BYTES));
        EXPECT(block != NULL, "malloc(%d) failed after %zu bytes", BYTES, taken);
        *block = all;
        all = block;
    }
    while (all != NULL) {
        void **block = all;
        all = *block;
        free(block);
    }
    char *block = unseen(malloc(large));
    EXPECT(block != NULL, "no %zu bytes, where as many are free", large);
    block[0] = block[large - 1] = 1;
    free(block);
    return 0;
}
