/* The address of a function. */
#include "misuse.h"

int main(void) {
    void *function = (void *)(uintptr_t)main;
    announce("foreign pointer: pointer %p was not allocated here", function);
    free(unseen(function));
    return unnoticed();
}
