/* The highest address, where arithmetic on it wraps around. */
#include "misuse.h"

int main(void) {
    void *highest = (void *)(UINTPTR_MAX - 15);
    announce("foreign pointer: pointer %p was not allocated here", highest);
    free(unseen(highest));
    return unnoticed();
}
