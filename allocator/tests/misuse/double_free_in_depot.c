/* A small block is freed again after two others were: found when the magazine that holds it twice goes to the depot, where no bitmap tells. */
#include "misuse.h"

enum { BLOCKS = 400 };

int main(void) {
    static char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = unseen(malloc(100));
    }
    announce("double free: pointer %p, size class 112 bytes", (void *)blocks[0]);
    for (size_t i = 0; i < 3; i++) {
        free(blocks[i]);
    }
    free(unseen(blocks[0]));
    for (size_t i = 3; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    _exit(unnoticed());
}
