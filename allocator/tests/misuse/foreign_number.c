/* A number where a pointer should be. */
#include "misuse.h"

int main(void) {
    void *number = (void *)(uintptr_t)16;
    announce("foreign pointer: pointer %p was not allocated here", number);
    free(unseen(number));
    return unnoticed();
}
