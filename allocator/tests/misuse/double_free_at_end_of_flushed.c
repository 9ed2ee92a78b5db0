/* The first free of the block is in its slab's bitmap when the program ends, the second in the thread's cache. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(500)), *other = unseen(malloc(500));
    announce("double free: pointer %p, size class 512 bytes", block);
    free(block);
    flush();
    free(unseen(block));
    return other == NULL;
}
