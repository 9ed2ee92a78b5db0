/* realloc of a pointer into a small block. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(500));
    char *inside = block + 32;
    announce("interior pointer: pointer %p, size class 512 bytes", (void *)inside);
    inside = unseen(realloc(inside, 5000));
    flush();
    return unnoticed();
}
