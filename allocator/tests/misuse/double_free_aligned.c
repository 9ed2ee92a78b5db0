/* A block with an alignment of its own is freed twice. */
#include "misuse.h"

int main(void) {
    void *block = unseen(memalign(4096, 100));
    announce("double free: pointer %p, size class 4096 bytes", block);
    free(block);
    free(unseen(block));
    flush();
    return unnoticed();
}
