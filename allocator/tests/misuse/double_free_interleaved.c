/* A block is freed, another, and the first again. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(48)), *other = unseen(malloc(48));
    announce("double free: pointer %p, size class 48 bytes", block);
    free(block);
    free(other);
    free(unseen(block));
    _exit(unnoticed());
}
