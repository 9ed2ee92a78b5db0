/* A block of whole slices is freed twice: 300000 bytes are five of 65536. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(300000));
    announce("double free: pointer %p, free span 327680 bytes", block);
    free(block);
    free(unseen(block));
    return unnoticed();
}
