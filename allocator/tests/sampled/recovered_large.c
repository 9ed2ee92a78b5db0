/* A process that goes on after a report (guard_recover=1): large blocks are guarded again once their addresses were given back. */
#include <stdbool.h>
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { TURNS = 60, SIZE = 50000, MANY = 20 };

static size_t guarded(void) {
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    return stats.guarded;
}

static void take_and_free(bool misused) {
    for (int i = 0; i < TURNS; i++) {
        (void)usleep(3000); /* one in two milliseconds is guarded */
        char *block = unseen(malloc(SIZE));
        EXPECT(block != NULL, "no memory");
        free(block);
        if (misused) {
            (void)*(volatile char *)unseen(block + 100);
        }
    }
}

int main(void) {
    require_serving();
    take_and_free(true);
    (void)freestone_purge();
    size_t before = guarded();
    EXPECT(before >= MANY, "only %zu blocks were guarded", before);
    take_and_free(false);
    EXPECT(guarded() >= before + MANY, "only %zu blocks were guarded after their places were given back",
           guarded() - before);
    return 0;
}
