/* free_sized is told more than a large block holds: its span is five slices. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(300000));
    announce("wrong size: pointer %p, 400000 bytes given, span 327680 bytes", block);
    free_sized(block, unseen_size(400000));
    return unnoticed();
}
