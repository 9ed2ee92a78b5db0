/* A plugin with blocks of its own: it allocates, resizes and frees them, and hands none out. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

uint64_t plugin_work(unsigned turns);

uint64_t plugin_work(unsigned turns) {
    enum { KEPT = 256 };
    char *kept[KEPT] = {0};
    size_t sizes[KEPT] = {0};
    uint64_t sum = 0, state = 12345;
    for (unsigned turn = 0; turn < turns; turn++) {
        state = state * 6364136223846793005u + 1;
        size_t at = state >> 56, size = (state >> 30) % 3000 + 1;
        for (size_t i = 0; i < sizes[at]; i += 97) {
            sum = sum * 31 + (unsigned char)kept[at][i];
        }
        if (size % 3 == 0) {
            free(kept[at]);
            kept[at] = calloc(1, size);
        } else {
            kept[at] = realloc(kept[at], size);
        }
        if (kept[at] == NULL) {
            return 0;
        }
        memset(kept[at], (int)(turn & 0xFF), size);
        sizes[at] = size;
    }
    for (size_t at = 0; at < KEPT; at++) {
        free(kept[at]);
    }
    return sum;
}
