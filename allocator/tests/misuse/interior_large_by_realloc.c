/* realloc of a pointer into a large block. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(300000));
    char *inside = block + 4096;
    announce("interior pointer: pointer %p, span 327680 bytes", (void *)inside);
    inside = unseen(realloc(inside, 400000));
    return unnoticed();
}
