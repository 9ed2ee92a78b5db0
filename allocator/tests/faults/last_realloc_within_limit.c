/* A block that ends where mapped memory does grows while address space has room for what it grows by and not for a second block. The kernel
 * would make it longer where it is, into addresses that are not the block's: realloc finds another way, and nothing is lost. */

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

enum { HUGE_PAGE = 2 << 20, SIZE = (100 << 20) - 4032, GROWN = 160 << 20, SLACK = 4 << 20 };

int main(void) {
    require_serving();
    char *block = unseen(aligned_alloc(HUGE_PAGE, SIZE));
    EXPECT(block != NULL, "no block");
    pattern_fill(block, 0, SIZE, 1);
    (void)address_space_limit(GROWN - SIZE + SLACK);
    char *grown = unseen(realloc(block, GROWN));
    EXPECT(grown != NULL, "a block of %d bytes does not grow to %d", SIZE, GROWN);
    size_t wrong = pattern_mismatch_from(grown, 0, SIZE, 1);
    EXPECT(wrong == SIZE_MAX, "byte %zu has changed", wrong);
    memset(grown + SIZE, 1, GROWN - SIZE);
    free(grown);
    return 0;
}
