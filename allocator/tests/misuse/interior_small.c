/* A pointer into a small block, with the alignment of a block. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(48));
    char *inside = block + 16;
    announce("interior pointer: pointer %p, size class 48 bytes", (void *)inside);
    free(unseen(inside));
    flush();
    return unnoticed();
}
