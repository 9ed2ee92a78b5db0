/* Blocks that grow: by 8 bytes a step to 64 MiB in a time that is linear in the length, and by doubling without the old and
 * the new lying in memory both. */
#include "hazard.h"

enum { MIB = 1 << 20, SHORT = 8 * MIB, LONG = 64 * MIB, TIMES = 3, DOUBLED = 512 * MIB, PEAK_PERCENT = 110 };

static uint64_t append(size_t length) {
    uint64_t start = nanoseconds();
    char *block = NULL;
    for (size_t size = 8; size <= length; size += 8) {
        block = realloc(block, size);
        EXPECT(block != NULL, "realloc failed");
        block[size - 8] = 1;
    }
    free(block);
    return nanoseconds() - start;
}

int main(void) {
    require_serving();
    size_t before = resident_kib();
    char *block = touched(MIB);
    for (size_t size = 2 * (size_t)MIB; size <= DOUBLED; size *= 2) {
        block = realloc(block, size);
        EXPECT(block != NULL, "realloc failed");
        memset(block + size / 2, 1, size / 2);
    }
    size_t peak = proc_number("/proc/self/status", "VmHWM:") - before;
    EXPECT(peak <= (size_t)DOUBLED / 1024 * PEAK_PERCENT / 100, "%zu KiB at the peak of a block of %d", peak,
           DOUBLED / 1024);
    free(block);
    uint64_t of_short = UINT64_MAX, of_long = UINT64_MAX; /* the best of three: others run as well */
    for (int round = 0; round < 3; round++) {
        uint64_t taken = append(SHORT);
        of_short = taken < of_short ? taken : of_short;
        taken = append(LONG);
        of_long = taken < of_long ? taken : of_long;
    }
    double times = (double)of_long / (double)of_short / (LONG / SHORT);
    EXPECT(times <= TIMES, "8 bytes cost %.1f times as much on the way to 64 MiB as to 8", times);
    printf("%zu KiB at the peak of %d; 8 bytes cost %.1f times as much to 64 MiB as to 8\n", peak, DOUBLED / 1024,
           times);
    return 0;
}
