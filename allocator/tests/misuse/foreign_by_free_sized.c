/* free_sized of memory that is not from the heap. */
#include "misuse.h"

int main(void) {
    static char object[64];
    announce("foreign pointer: pointer %p was not allocated here", (void *)object);
    free_sized(unseen(object), 64);
    return unnoticed();
}
