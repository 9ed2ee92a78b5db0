/* free_sized is told a size that cannot be. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(48));
    announce("wrong size: pointer %p, 18446744073709551615 bytes given, size class 48 bytes", block);
    free_sized(block, unseen_size(SIZE_MAX));
    return unnoticed();
}
