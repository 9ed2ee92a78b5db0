/* The address of a static object. */
#include "misuse.h"

int main(void) {
    static char object[64];
    announce("foreign pointer: pointer %p was not allocated here", (void *)object);
    free(unseen(object));
    return unnoticed();
}
