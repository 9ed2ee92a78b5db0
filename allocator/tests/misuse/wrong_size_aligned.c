/* free_aligned_sized is told more than the block holds. */
#include "misuse.h"

int main(void) {
    void *block = unseen(aligned_alloc(256, 512));
    announce("wrong size: pointer %p, 1024 bytes given, size class 512 bytes", block);
    free_aligned_sized(block, 256, unseen_size(1024));
    return unnoticed();
}
