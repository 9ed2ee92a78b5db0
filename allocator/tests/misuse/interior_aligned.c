/* A pointer into a block that was aligned by hand, as old programs do it. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(3000));
    char *inside = (char *)(((uintptr_t)block + 64) & ~(uintptr_t)63) + 64;
    announce("interior pointer: pointer %p, size class 3072 bytes", (void *)inside);
    free(unseen(inside));
    flush();
    return unnoticed();
}
