/* realloc to fewer bytes when no memory is left to move to, in a hardened process: the block stays where it is, and is of its new size in every
 * respect. */
#include "../entry.h"
#include "../expect.h"
#include "../serving.h"
#include "use_up.h"

static const size_t from[] = {1000, 20000, 200000, 300000, 3000000, 200 << 20};
enum { PAIRS = sizeof from / sizeof *from };

static unsigned char *block[PAIRS];

int main(void) {
    require_serving();
    for (int i = 0; i < PAIRS; i++) {
        block[i] = unseen(malloc(from[i]));
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], i + 1, from[i] < 1000000 ? from[i] : 1000000);
    }
    use_up(8 << 20);
    for (int i = 0; i < PAIRS; i++) {
        for (size_t size = from[i] / 4 * 3; size > 0; size /= 5) {
            unsigned char *resized = unseen(realloc(block[i], size));
            EXPECT(resized != NULL, "%zu bytes cannot shrink to %zu", from[i], size);
            EXPECT(malloc_usable_size(resized) == size, "%zu bytes are %zu", size, malloc_usable_size(resized));
            for (size_t at = 0; at < size && at < 1000000; at++) {
                EXPECT(resized[at] == i + 1, "byte %zu of %zu has changed", at, size);
            }
            block[i] = resized;
        }
        (void)freestone_check();
        free(block[i]);
    }
    return 0;
}
