/* Blocks are allocated, grown and freed for long at a limit on address space, and requests are refused all the time: as much can be in use at the end as
 * at the start. The limit is in force already. */
#include <stdbool.h>
#include <stdint.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { OPERATIONS = 12000, PARTS = 3, BLOCKS = 64, MIB = 1 << 20, LIVE_LEAST_MIB = 70, GROWN_MOST = 48 << 20 };

static struct {
    char *block;
    size_t size;
} held[BLOCKS];
static size_t live, refused;

static size_t below(size_t most) {
    static uint64_t seed = 88172645463325252;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % most;
}

static void hold(size_t i, char *block, size_t size) {
    refused += block == NULL && size != 0;
    live += size - held[i].size;
    held[i].block = block;
    held[i].size = size;
    if (block != NULL) {
        block[0] = block[size - 1] = (char)i;
    }
}

static void take(size_t i) {
    size_t size = 1 + below(below(3) > 0 ? MIB : 16 * MIB);
    char *block = unseen(malloc(size));
    hold(i, block, block != NULL ? size : 0);
    refused += block == NULL;
}

static void drop(size_t i) {
    free(held[i].block);
    hold(i, NULL, 0);
}

static void resize(size_t i, bool shrink) {
    size_t size = held[i].size + held[i].size / 4 + below(MIB / 4);
    size = shrink || size > GROWN_MOST ? 1 + below(4 * MIB) : size;
    char *block = unseen(realloc(held[i].block, size));
    if (block != NULL) {
        EXPECT(block[0] == (char)i, "block %zu has changed", i);
        hold(i, block, size);
    } else {
        refused++;
        drop(i);
    }
}

int main(void) {
    require_serving();
    size_t mean = 0;
    for (int part = 0; part < PARTS; part++) {
        size_t sum = 0;
        for (int n = 0; n < OPERATIONS / PARTS; n++) {
            size_t i = below(BLOCKS), what = below(4);
            if (held[i].block == NULL) {
                take(i);
            } else if (what == 0) {
                drop(i);
            } else {
                resize(i, what == 3);
            }
            sum += live / 1024;
        }
        mean = sum / (OPERATIONS / PARTS) / 1024;
    }
    EXPECT(refused > 0, "nothing was refused");
    EXPECT(mean >= LIVE_LEAST_MIB, "%zu MiB were in use in the last part, %zu requests refused", mean, refused);
    for (size_t i = 0; i < BLOCKS; i++) {
        free(held[i].block);
    }
    return 0;
}
