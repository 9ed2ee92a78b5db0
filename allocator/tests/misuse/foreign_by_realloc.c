/* realloc of memory that is not from the heap. */
#include "misuse.h"

int main(void) {
    static char object[64];
    announce("foreign pointer: pointer %p was not allocated here", (void *)object);
    (void)unseen(realloc(unseen(object), 100));
    return unnoticed();
}
