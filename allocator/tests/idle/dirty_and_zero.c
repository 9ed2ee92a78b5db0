/* calloc gives zeros out of memory of every history: never used, used and freed, given back while the program idled, huge,
 * and each next to the other in one slab. */
#include "field.h"
#include "serving.h"

enum { CLASSES = 53, HELD = 400, ROUNDS = 6, LARGEST_HELD = 24 << 20 };

static void *held[CLASSES][HELD];

static size_t size_of(size_t class) {
    if (class < 8) {
        return 16 * (class + 1);
    }
    if (class == CLASSES - 1) { /* a page with a header: the one beside four per doubling */
        return 4096 + 512;
    }
    size_t doubling = (size_t)128 << (class - 8) / 4;
    return doubling + doubling * ((class - 8) % 4 + 1) / 4;
}

static size_t count_of(size_t class) {
    size_t count = (LARGEST_HELD / 16) / size_of(class);
    return count < 8 ? 8 : count < HELD ? count : HELD;
}

static void take_zero(size_t class, size_t i) {
    size_t size = size_of(class);
    held[class][i] = calloc(1, size);
    EXPECT(held[class][i] != NULL, "calloc(%zu) failed", size);
    size_t dirty = pattern_not_zero(held[class][i], size);
    EXPECT(dirty == SIZE_MAX, "calloc(%zu): byte %zu is not zero", size, dirty);
    memset(held[class][i], 0xff, malloc_usable_size(held[class][i]));
}

static void large_and_huge(uint64_t *random) {
    for (int i = 0; i < 6; i++) {
        size_t size = ((size_t)1 << 19) + pattern_below(random, (size_t)9 << 20);
        unsigned char *block = pattern_below(random, 2) == 0 ? calloc(1, size) : malloc(size);
        EXPECT(block != NULL, "no memory for %zu bytes", size);
        memset(block, 0xff, size);
        free(block);
        size_t other = ((size_t)1 << 19) + pattern_below(random, (size_t)9 << 20);
        block = calloc(1, other);
        size_t dirty = block == NULL ? 0 : pattern_not_zero(block, other);
        EXPECT(dirty == SIZE_MAX, "calloc(%zu): byte %zu is not zero", other, dirty);
        memset(block, 0xff, other / 2);
        free(block);
    }
}

int main(void) {
    require_serving();
    uint64_t random = 21;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t class = 0; class < CLASSES; class++) {
            for (size_t i = 0; i < count_of(class); i++) {
                if (held[class][i] == NULL) {
                    take_zero(class, i);
                }
            }
        }
        large_and_huge(&random);
        for (size_t class = 0; class < CLASSES; class++) {
            for (size_t i = 0; i < count_of(class); i++) {
                if (pattern_below(&random, 8) != 0) {
                    free(held[class][i]);
                    held[class][i] = NULL;
                }
            }
        }
        switch (round % 3) {
        case 0:
            tasks_sleep(1400); /* long enough for two looks of the keeper */
            break;
        case 1:
            (void)freestone_purge();
            break;
        default:
            break;
        }
    }
    return 0;
}
