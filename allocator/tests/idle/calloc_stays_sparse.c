/* Blocks of calloc that lie where others were written, freed and given back cost as much memory as is written to them; and they are zero,
 * whatever was freed beside them, written and given back in between. */
#include "field.h"
#include "resident.h"
#include "serving.h"

enum { COUNT = 300, KEPT_EACH = 16, ROUNDS = 30, LARGEST = 256 * 1024 };

static char *block[COUNT];

static size_t size_of(uint64_t *random) { return 4096 + pattern_below(random, LARGEST - 4096 + 1); }

static void take(int i, size_t size) {
    block[i] = calloc(1, size);
    size_t dirty = block[i] == NULL ? 0 : pattern_not_zero(block[i], size);
    EXPECT(dirty == SIZE_MAX, "calloc(%zu): byte %zu is not zero", size, dirty);
}

static void write_all(int i) { memset(block[i], 0xff, malloc_usable_size(block[i])); }

static void sparse(size_t size) {
    for (int i = 0; i < COUNT; i++) {
        take(i, size);
        write_all(i);
    }
    for (int i = 0; i < COUNT; i++) {
        if (i % KEPT_EACH != 0) {
            free(block[i]);
        }
    }
    (void)freestone_purge();
    size_t before = resident_kib();
    for (int i = 0; i < COUNT; i++) {
        if (i % KEPT_EACH != 0) {
            block[i] = calloc(1, size);
            EXPECT(block[i] != NULL, "calloc(%zu) failed", size);
            block[i][size / 2] = 1;
        }
    }
    size_t more = resident_more_kib(resident_kib(), before), piece_kib = resident_piece_bytes() / 1024;
    /* the page that is written, those at both ends that are others' too, each with what the kernel brings in beside it; and
     * what a thread has of this and that */
    EXPECT(more < COUNT * 3 * piece_kib + 1024, "blocks of %zu bytes of which one was written: %zu KiB", size, more);
    for (int i = 0; i < COUNT; i++) {
        if (i % KEPT_EACH != 0) {
            block[i][size / 2] = 0;
            size_t dirty = pattern_not_zero(block[i], size);
            EXPECT(dirty == SIZE_MAX, "calloc(%zu): byte %zu is not zero", size, dirty);
        }
        free(block[i]);
    }
}

int main(void) {
    require_serving();
    uint64_t random = 22;
    sparse(128 * 1024);
    sparse(100000);
    sparse(20000);
    memset(block, 0, sizeof block);
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = size_of(&random); /* many of one size, so that they share slabs */
        for (int i = 0; i < COUNT; i++) {
            if (block[i] == NULL && pattern_below(&random, 3) != 0) {
                take(i, pattern_below(&random, 4) == 0 ? size_of(&random) : size);
                write_all(i);
            } else if (block[i] != NULL && pattern_below(&random, 2) == 0) {
                free(block[i]);
                block[i] = NULL;
            }
        }
        if (pattern_below(&random, 2) == 0) {
            (void)freestone_purge();
        }
    }
    return 0;
}
