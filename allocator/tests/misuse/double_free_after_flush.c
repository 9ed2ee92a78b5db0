/* A small block is freed again long after the first time has reached its slab. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(5000));
    void *neighbour = unseen(malloc(5000)); /* keeps the slab */
    announce("double free: pointer %p, size class 5120 bytes", block);
    free(block);
    flush();
    free(unseen(block));
    flush();
    free(neighbour);
    return unnoticed();
}
