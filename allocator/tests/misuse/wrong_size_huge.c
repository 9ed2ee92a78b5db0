/* free_sized is told more than a mapping of its own holds. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(200 << 20));
    announce("wrong size: pointer %p, 300000000 bytes given, span 209715200 bytes", block);
    free_sized(block, unseen_size(300000000));
    return unnoticed();
}
