/* A process that goes on after a report (guard_recover=1), whose overflow runs through places that were never used: it goes on, through all of them, and
 * what calloc gives is zero all the same. */
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { FIRST = 5, BLOCKS = 300, PACE_US = 2500 };

int main(void) {
    require_serving();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *block = NULL;
    for (unsigned i = 0; i < FIRST; i++) { /* the lowest of them: behind the last place nobody can go on */
        char *one = unseen(malloc(64));
        EXPECT(one != NULL, "no memory");
        block = block == NULL || one < block ? one : block;
    }
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    EXPECT(stats.guarded == FIRST, "%zu blocks are guarded", stats.guarded);
    memset(unseen(block), 'z', 9 * page + 100); /* the misuse: into the third place behind it */
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t bytes = page + (i % 4) * 1024;
        (void)usleep(PACE_US); /* each is guarded */
        char *zero = unseen(calloc(1, bytes));
        EXPECT(zero != NULL, "no memory");
        for (size_t byte = 0; byte < bytes; byte++) {
            EXPECT(zero[byte] == 0, "block %u: byte %zu of %zu is %d", i, byte, bytes, zero[byte]);
        }
        free(zero);
    }
    return 0;
}
