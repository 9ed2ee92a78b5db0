/* A pointer to the start of a later slice of a large block. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(300000));
    char *inside = block + 2 * 65536;
    announce("interior pointer: pointer %p, span 327680 bytes", (void *)inside);
    free(unseen(inside));
    return unnoticed();
}
