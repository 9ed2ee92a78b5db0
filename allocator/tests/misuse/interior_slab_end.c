/* A pointer to the few bytes at the end of a slab that are no block: 1365 blocks of 48 bytes leave 16 of 65536. */
#include "misuse.h"

int main(void) {
    uintptr_t block = (uintptr_t)unseen(malloc(48));
    void *behind = (void *)((block & ~(uintptr_t)65535) + 65520);
    announce("interior pointer: pointer %p, size class 48 bytes", behind);
    free(unseen(behind));
    flush();
    return unnoticed();
}
