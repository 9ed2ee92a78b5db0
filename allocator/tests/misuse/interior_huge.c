/* A pointer into a block with a mapping of its own. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(200 << 20));
    char *inside = block + 4096;
    announce("interior pointer: pointer %p, span 209715200 bytes", (void *)inside);
    free(unseen(inside));
    return unnoticed();
}
