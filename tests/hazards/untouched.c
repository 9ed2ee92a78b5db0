/* What calloc gives and nobody touches is in no memory: fresh, and where freed memory has gone back. */
#include "hazard.h"

enum { MIB = 256, RESIDENT_MOST_KIB = 4096 };

static size_t cost(void) {
    size_t before = resident_kib();
    unsigned char *block = calloc(1, (size_t)MIB << 20);
    EXPECT(block != NULL, "calloc failed");
    size_t after = resident_kib();
    for (size_t at = 0; at < (size_t)MIB << 20; at += (1 << 20) + 8) {
        EXPECT(block[at] == 0, "byte %zu is %d", at, block[at]);
    }
    free(block);
    return after > before ? after - before : 0;
}

int main(void) {
    require_serving();
    size_t fresh = cost();
    EXPECT(fresh <= RESIDENT_MOST_KIB, "%zu KiB are resident of %d MiB that nobody touched", fresh, MIB);
    size_t before = resident_kib();
    unsigned char *dirty = malloc((size_t)MIB << 20);
    EXPECT(dirty != NULL, "malloc failed");
    memset(dirty, 0xff, (size_t)MIB << 20);
    free(dirty);
    (void)resident_after_rest(before + RESIDENT_MOST_KIB);
    size_t again = cost();
    EXPECT(again <= RESIDENT_MOST_KIB, "%zu KiB are resident of %d MiB that nobody touched, freed memory before", again,
           MIB);
    printf("%zu KiB, and %zu where memory was freed\n", fresh, again);
    return 0;
}
