/* A pointer to the last byte of a block. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(256));
    char *inside = block + 255;
    announce("interior pointer: pointer %p, size class 256 bytes", (void *)inside);
    free(unseen(inside));
    flush();
    return unnoticed();
}
