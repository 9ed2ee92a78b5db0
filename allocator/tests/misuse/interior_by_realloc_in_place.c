/* realloc of a pointer into a small block, whose class holds what is asked for: glibc stops it, and here it would stay where it is. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(4000));
    char *inside = block + 16;
    announce("interior pointer: pointer %p, size class 4096 bytes", (void *)inside);
    inside = unseen(realloc(inside, 4000));
    return unnoticed();
}
