/* Address space has room for a block that is a mapping of its own, and for little more: not for what it takes to align it to a huge page. */

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum { ANOTHER = 400000, SIZE = 200000000, SLACK = 64 << 10 };

int main(void) {
    require_serving();
    EXPECT(unseen(malloc(ANOTHER)) != NULL, "no block"); /* the heap is there */
    (void)address_space_limit(SIZE + SLACK);
    char *block = unseen(malloc(SIZE));
    EXPECT(block != NULL, "no %d bytes where there is room for %d more", SIZE, SLACK);
    memset(block, 1, SIZE);
    free(block);
    return 0;
}
