/* A pointer into a small block, aligned as blocks are: found when its magazine goes to the depot, where no bitmap tells. */
#include "misuse.h"

enum { BLOCKS = 400 };

int main(void) {
    static char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = unseen(malloc(96));
    }
    char *inside = blocks[0] + 32;
    announce("interior pointer: pointer %p, size class 96 bytes", (void *)inside);
    free(unseen(inside));
    for (size_t i = 1; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    _exit(unnoticed());
}
