/* Who shrinks a block has at most a third more than he keeps, or 64 bytes; and what he keeps is whole. */
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { SMALL_MOST = 64, LARGEST = 256 << 10 };

static void shrink(size_t from, size_t to) {
    char *block = unseen(malloc(from));
    EXPECT(block != NULL, "malloc(%zu) failed", from);
    pattern_fill(block, 0, from, from);
    block = unseen(realloc(block, to));
    EXPECT(block != NULL, "%zu bytes cannot shrink to %zu", from, to);
    size_t usable = malloc_usable_size(block);
    EXPECT(usable >= to && (usable <= SMALL_MOST || usable - to <= to / 3), "%zu bytes shrunk to %zu hold %zu", from,
           to, usable);
    size_t mismatch = pattern_mismatch(block, to, from);
    EXPECT(mismatch == SIZE_MAX, "%zu bytes shrunk to %zu: byte %zu is another", from, to, mismatch);
    free(block);
}

int main(void) {
    require_serving();
    for (size_t from = 1; from <= LARGEST; from += 1 + from / 50) {
        for (size_t to = from; to > 0; to -= 1 + to / 20) {
            shrink(from, to);
        }
    }
    return 0;
}
