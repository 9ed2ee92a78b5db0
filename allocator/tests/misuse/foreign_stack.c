/* The address of a variable. */
#include "misuse.h"

int main(void) {
    int variable = 0;
    announce("foreign pointer: pointer %p was not allocated here", (void *)&variable);
    free(unseen(&variable));
    return unnoticed();
}
