/* A small block is freed twice in a row. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(48));
    announce("double free: pointer %p, size class 48 bytes", block);
    free(block);
    free(unseen(block));
    _exit(unnoticed());
}
