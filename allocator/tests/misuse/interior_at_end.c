/* A pointer into a block is freed shortly before the program ends. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(300));
    announce("interior pointer: pointer %p, size class 320 bytes", (void *)(block + 16));
    free(unseen(block + 16));
    return 0;
}
