/* well.c: programs that nothing is wrong with. */
#include "patient.h"

#include <stdlib.h>

static void healthy(void) {
    enum { BLOCKS = 1000 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < 3000; i++) {
        for (int j = 0; j < BLOCKS; j++)
            blocks[j] = asked((size_t)(16 + j));
        work(1);
        for (int j = 0; j < BLOCKS; j++)
            free(blocks[j]);
    }
}

static void computes(void) { work(1500); }

const struct patient well_ones[] = {
    {"healthy", healthy},
    {"healthy-computes", computes},
    {NULL, NULL},
};
