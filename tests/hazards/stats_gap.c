/* What libfreestone says it holds is what the kernel says, after much was freed here and there. */
#include "hazard.h"

enum { BLOCKS = 200000, SIZE = 700, GAP_PERMILLE = 30 };

int main(void) {
    require_serving();
    TABLE(block, BLOCKS);
    memset(block, 1, sizeof block);
    free(unseen(malloc(1)));
    size_t before = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(SIZE);
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % 3 != 0) {
            free(block[i]);
        }
    }
    struct freestone_stats told;
    freestone_stats_read(&told);
    size_t held = told.slabs + told.large + told.retained + told.bookkeeping;
    size_t resident = (resident_kib() - before) * 1024;
    size_t gap = held > resident ? held - resident : resident - held;
    EXPECT(gap * 1000 <= resident * GAP_PERMILLE, "it says %zu KiB, the kernel %zu", held / 1024, resident / 1024);
    printf("it says %zu KiB, the kernel %zu\n", held / 1024, resident / 1024);
    return 0;
}
