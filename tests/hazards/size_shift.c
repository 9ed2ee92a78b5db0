/* A cache of values whose sizes shift over its life, written over at random and evicted at random, so that 128 MiB are alive:
 * what is resident stays near that, and classes round up by little. */
#include "hazard.h"

enum { LIVE_MIB = 128, KEYS = 1 << 20, PHASES = 8, RESIDENT_PERCENT = 125, WASTE_PERMILLE = 125 };

static unsigned char *value[KEYS];
static uint32_t length[KEYS];
static size_t live;

static void evict(size_t key) {
    free(value[key]);
    live -= length[key];
    value[key] = NULL;
    length[key] = 0;
}

int main(void) {
    require_serving();
    size_t asked = 0, usable = 0;
    for (size_t size = 129; size < 32768; size += 7) {
        void *block = malloc(size);
        asked += size;
        usable += malloc_usable_size(block);
        free(block);
    }
    memset(length, 0, sizeof length); /* the tables are resident before it begins */
    memset(value, 0, sizeof value);
    size_t before = resident_kib();
    static const size_t middle[PHASES] = {100, 150, 220, 330, 500, 240, 700, 1200};
    uint64_t random = 1;
    for (size_t phase = 0; phase < PHASES; phase++) {
        for (size_t written = 0; written < (size_t)2 * LIVE_MIB << 20;) {
            size_t key = pattern_below(&random, KEYS), size = middle[phase] / 2 + pattern_below(&random, middle[phase]);
            evict(key);
            value[key] = malloc(size);
            EXPECT(value[key] != NULL, "malloc failed");
            memset(value[key], 1, size);
            length[key] = (uint32_t)size;
            live += size;
            written += size;
            while (live > (size_t)LIVE_MIB << 20) {
                size_t gone = pattern_below(&random, KEYS);
                if (value[gone] != NULL) {
                    evict(gone);
                }
            }
        }
    }
    size_t most = before + live / 1024 * RESIDENT_PERCENT / 100;
    size_t held = resident_kib() <= most ? resident_kib() : resident_after_rest(most);
    EXPECT(held <= most, "%zu KiB are alive, and %zu are held (%.2f)", live / 1024, held - before,
           (double)(held - before) * 1024 / (double)live);
    size_t waste = (usable - asked) * 1000 / asked;
    EXPECT(waste <= WASTE_PERMILLE, "blocks are %zu.%zu %% larger than what was asked for", waste / 10, waste % 10);
    printf("%.2f times what is alive is resident; blocks are %zu.%zu %% larger than asked\n",
           (double)(held - before) * 1024 / (double)live, waste / 10, waste % 10);
    return 0;
}
