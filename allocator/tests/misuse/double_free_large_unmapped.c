/* A large block is freed again after the end of the heap, where it lay, was unmapped: 32 MiB are 513 slices, as a block starts at any line of
 * its first page. calloc, since a huge page may leave a gap before it. */
#include "misuse.h"

int main(void) {
    require_serving(); /* which allocates */
    void *neighbour = unseen(calloc(1, 300000));
    void *block = unseen(calloc(1, 32 << 20));
    announce("double free: pointer %p, free span 33619968 bytes", block);
    free(block);
    flush();
    free(unseen(block));
    free(neighbour);
    return unnoticed();
}
