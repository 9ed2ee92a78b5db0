/* Where huge pages are allowed for all, a big heap of small blocks lies in them. */
#include "hazard.h"

enum { MIB = 256, SIZE = 4000, BLOCKS = (MIB << 20) / SIZE, LEAST_PERCENT = 80 };

int main(void) {
    require_serving();
    TABLE(block, BLOCKS);
    uint64_t random = 1;
    size_t before = proc_number("/proc/self/smaps_rollup", "AnonHugePages:");
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(SIZE);
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        ((char *)block[pattern_below(&random, BLOCKS)])[pattern_below(&random, SIZE)] = 1;
    }
    size_t huge = proc_number("/proc/self/smaps_rollup", "AnonHugePages:") - before;
    size_t percent = huge * 100 / (MIB * 1024);
    EXPECT(percent >= LEAST_PERCENT, "%zu %% of it lies in huge pages", percent);
    printf("%zu %% of it lies in huge pages\n", percent > 100 ? 100 : percent);
    return 0;
}
