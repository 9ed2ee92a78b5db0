/* malloc_usable_size is at least what was asked, stays what it is while the block lives, and every byte of it may be
 * written without harm to any other block. */
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { MANY = 2300 };

static size_t asked_of(size_t i) {
    /* All small sizes, then ever coarser steps to 1 MiB. */
    return i < 2048 ? i : 2048 + (i - 2048) * 4211;
}

int main(void) {
    require_serving();
    EXPECT(malloc_usable_size(NULL) == 0, "malloc_usable_size(NULL) is not 0");
    static void *blocks[MANY];
    static size_t usable[MANY];
    for (size_t i = 0; i < MANY; i++) {
        blocks[i] = malloc(asked_of(i));
        EXPECT(blocks[i] != NULL, "malloc(%zu) failed", asked_of(i));
        usable[i] = malloc_usable_size(blocks[i]);
        EXPECT(usable[i] >= asked_of(i), "malloc(%zu) holds %zu", asked_of(i), usable[i]);
        pattern_fill(blocks[i], 0, usable[i], i);
    }
    for (size_t i = 0; i < MANY; i++) {
        EXPECT(malloc_usable_size(blocks[i]) == usable[i], "the usable size of a block went from %zu to %zu", usable[i],
               malloc_usable_size(blocks[i]));
        size_t mismatch = pattern_mismatch(blocks[i], usable[i], i);
        EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu usable ones belongs to another block too", mismatch, usable[i]);
    }
    /* What is usable is what realloc keeps. */
    for (size_t i = 0; i < MANY; i++) {
        void *block = realloc(blocks[i], usable[i] + 1);
        EXPECT(block != NULL, "realloc to %zu bytes failed", usable[i] + 1);
        size_t mismatch = pattern_mismatch(block, usable[i], i);
        EXPECT(mismatch == SIZE_MAX, "realloc lost byte %zu of %zu usable ones", mismatch, usable[i]);
        free(block);
    }
    return 0;
}
