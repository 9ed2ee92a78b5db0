/* What lies free gives way to a block that is a mapping of its own, and to one that grows: the peak is what was in use at once. */
#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"
#include "swing.h"

enum { MIB = 1 << 20, PART = 64 << 10, FREED_MIB = 100, MAPPED_MIB = 150, BESIDE_MIB = 40 };

static void expect_peak(size_t before_kib, size_t most_mib) {
    size_t peak = resident_peak_kib() - before_kib;
    EXPECT(peak < (most_mib + BESIDE_MIB) * 1024, "%zu KiB were resident at once, of %zu MiB in use", peak, most_mib);
}

int main(void) {
    require_serving();
    size_t before_kib = resident_kib();
    swing(FREED_MIB * (MIB / PART), PART);
    char *block = malloc((size_t)MAPPED_MIB * MIB);
    EXPECT(block != NULL, "no memory");
    memset(block, 1, (size_t)MAPPED_MIB * MIB);
    expect_peak(before_kib, MAPPED_MIB);
    swing(FREED_MIB * (MIB / PART), PART);
    expect_peak(before_kib, MAPPED_MIB + FREED_MIB);
    size_t grown = (size_t)(MAPPED_MIB + FREED_MIB + BESIDE_MIB) * MIB;
    block = realloc(block, grown);
    EXPECT(block != NULL, "no memory to grow");
    memset(block, 2, grown);
    expect_peak(before_kib, grown / MIB);
    free(block);
    return 0;
}
