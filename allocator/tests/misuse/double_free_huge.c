/* A block with a mapping of its own is gone when it is freed again: the library cannot tell any more that it was
 * one of its blocks. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(200 << 20));
    announce("foreign pointer: pointer %p was not allocated here", block);
    free(block);
    free(unseen(block));
    return unnoticed();
}
