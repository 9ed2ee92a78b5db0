/* A pointer into a block of which the thread keeps one in a magazine, so that the free that is wrong comes to the heap: at once. */
#include "misuse.h"

int main(void) {
    char *blocks[8];
    for (size_t i = 0; i < 8; i++) {
        blocks[i] = unseen(malloc(200000));
    }
    char *inside = blocks[7] + 4096;
    announce("interior pointer: pointer %p, size class 229376 bytes", (void *)inside);
    for (size_t i = 0; i < 7; i++) {
        free(blocks[i]);
    }
    free(unseen(inside));
    _exit(unnoticed());
}
