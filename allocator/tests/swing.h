/* Memory taken, written and given back at once: there is something to return, or to use again. The list of blocks is static, so that it is not in
 * the heap. */
#ifndef FREESTONE_TESTS_SWING_H
#define FREESTONE_TESTS_SWING_H

#include "entry.h"
#include "expect.h"

enum { SWING_MOST = 4000 };

static inline void swing(size_t count, size_t size) {
    static void *block[SWING_MOST];
    EXPECT(count <= SWING_MOST, "%zu blocks", count);
    for (size_t i = 0; i < count; i++) {
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], 1, size);
    }
    for (size_t i = 0; i < count; i++) {
        free(block[i]);
    }
}

/* Fills what is free of the blocks, and frees all of them but each `stays`-th. */
static inline void swing_most(void **block, size_t count, size_t size, size_t stays) {
    for (size_t i = 0; i < count; i++) {
        if (block[i] == NULL) {
            block[i] = unseen(malloc(size));
            EXPECT(block[i] != NULL, "no memory");
            memset(block[i], 1, size);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (i % stays != 0) {
            free(block[i]);
            block[i] = NULL;
        }
    }
}

#endif
