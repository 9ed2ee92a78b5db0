/* A pointer one byte off. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(64));
    char *inside = block + 1;
    announce("interior pointer: pointer %p, size class 64 bytes", (void *)inside);
    free(unseen(inside));
    flush();
    return unnoticed();
}
