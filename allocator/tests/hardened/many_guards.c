/* More large blocks than may have guards, in a hardened process: the rest is served without, the statistics say how many, and the process is far
 * from as many mappings as the kernel allows. */
#include <stdio.h>
#include <string.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { BLOCKS = 16000, SIZE = 300000, MAPPINGS_MOST = 60000, ROUNDS = 32000 };

static unsigned char *blocks[BLOCKS];

static size_t mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    EXPECT(file != NULL, "no /proc/self/maps");
    size_t lines = 0;
    for (int byte = getc(file); byte != EOF; byte = getc(file)) {
        lines += byte == '\n';
    }
    fclose(file);
    return lines;
}

int main(void) {
    require_serving();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = unseen(malloc(SIZE));
        EXPECT(blocks[i] != NULL, "block %zu", i);
        memset(blocks[i], (int)i, 100);
        blocks[i][SIZE - 1] = (unsigned char)i;
    }
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    EXPECT(stats.unguarded > 1000, "%zu guards were left out", stats.unguarded);
    EXPECT(mappings() < MAPPINGS_MOST, "%zu mappings", mappings());
    for (size_t i = 0; i < BLOCKS; i++) {
        EXPECT(blocks[i][99] == (unsigned char)i && blocks[i][SIZE - 1] == (unsigned char)i, "block %zu has changed",
               i);
        free(blocks[i]);
    }
    EXPECT(mappings() < MAPPINGS_MOST, "%zu mappings once all are freed", mappings());
    freestone_stats_read(&stats);
    size_t before = stats.unguarded; /* guards of what was freed are no longer counted: */
    for (size_t i = 0; i < ROUNDS; i++) {
        free(unseen(malloc(SIZE + i % 8 * 100000)));
    }
    freestone_stats_read(&stats);
    EXPECT(stats.unguarded == before, "%zu guards were left out with one block in use", stats.unguarded - before);
    return 0;
}
