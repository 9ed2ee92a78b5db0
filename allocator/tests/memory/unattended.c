/* A program of one thread under system-call filters, as in a container, has nobody who returns memory while it idles. It keeps little of what it
 * has freed when it stops calling, but what it takes again and again it does keep. */
#include <stdbool.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum {
    MIB = 1 << 20,
    FREED_MIB = 300,
    SWING_MIB = 64,
    SWINGS = 20,
    LEFT_MIB = 40,
    TRIMS = 20,
    TRIMMED_MIB = 12,
    BLOCKS_MOST = 1 << 20
};

static void *blocks[BLOCKS_MOST];

static void take_all(size_t size, size_t count) {
    EXPECT(count <= BLOCKS_MOST, "%zu blocks", count);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = unseen(malloc(size));
        EXPECT(blocks[i] != NULL, "malloc failed");
        memset(blocks[i], 1, size);
    }
}

static void free_all(size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

int main(int count, char **argument) {
    require_serving();
    EXPECT(count == 3, "what, and blocks of which size");
    size_t size = (size_t)atol(argument[2]);
    memset(blocks, 0, sizeof blocks); /* no page of it comes later */
    size_t before = resident_kib();
    bool trims = strcmp(argument[1], "trims") == 0;
    if (trims || strcmp(argument[1], "idles") == 0) {
        size_t blocks_of_all = (size_t)FREED_MIB * MIB / size;
        for (int i = 0; trims && i < TRIMS;
             i++) { /* what the program returns itself, and takes again, it need not keep */
            take_all(size, blocks_of_all / (FREED_MIB / TRIMMED_MIB));
            free_all(blocks_of_all / (FREED_MIB / TRIMMED_MIB));
            (void)malloc_trim(0);
        }
        take_all(size, blocks_of_all);
        free_all(blocks_of_all);
        size_t more = resident_more_kib(resident_kib(), before);
        printf("%zu KiB of %d MiB are still in memory\n", more, FREED_MIB);
        EXPECT(more <= LEFT_MIB * 1024, "%d MiB were freed, and %zu KiB are still in memory", FREED_MIB, more);
        return 0;
    }
    EXPECT(strcmp(argument[1], "swings") == 0, "no such case");
    size_t blocks_of_swing = (size_t)SWING_MIB * MIB / size,
           pages = (size_t)SWING_MIB * MIB / (size_t)sysconf(_SC_PAGESIZE);
    long faults = minor_faults();
    for (int i = 0; i < SWINGS; i++) {
        take_all(size, blocks_of_swing);
        free_all(blocks_of_swing);
    }
    size_t came = (size_t)(minor_faults() - faults);
    printf("%zu faults of %zu pages\n", came, pages);
    EXPECT(came <= SWINGS / 5 * 2 * pages, "%d swings of %zu pages cost %zu faults", SWINGS, pages, came);
    return 0;
}
