/* realloc in place of a pointer that no malloc returns, into a block of a slab of one slice. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(200));
    char *inside = block + 8;
    announce("interior pointer: pointer %p, size class 224 bytes", (void *)inside);
    inside = unseen(realloc(inside, 200));
    return unnoticed();
}
