/* A small block is freed again after another one was. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(100));
    void *other = unseen(malloc(100));
    announce("double free: pointer %p, size class 112 bytes", block);
    free(block);
    free(other);
    free(unseen(block));
    flush();
    return unnoticed();
}
