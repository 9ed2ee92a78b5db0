/* free_sized is told more than the block holds. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(48));
    announce("wrong size: pointer %p, 49 bytes given, size class 48 bytes", block);
    free_sized(block, unseen_size(49));
    return unnoticed();
}
