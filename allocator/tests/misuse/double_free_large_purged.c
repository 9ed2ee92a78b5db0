/* A large block is freed again after its memory went back to the system. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(1000000));
    void *neighbour = unseen(malloc(1000000)); /* keeps the span from being joined with what follows */
    announce("double free: pointer %p, free span 1048576 bytes", block);
    free(block);
    flush();
    free(unseen(block));
    free(neighbour);
    return unnoticed();
}
