/* Two blocks are freed in a row and again, and the program ends: too far apart to be seen in free, too few to be flushed. */
#include "misuse.h"

int main(void) {
    enum { MANY = 4 };
    void *blocks[MANY];
    for (int i = 0; i < MANY; i++) {
        blocks[i] = unseen(malloc(100));
    }
    announce("double free: pointer %p, size class 112 bytes", blocks[0]);
    for (int i = 0; i < MANY; i++) {
        free(blocks[i]);
    }
    free(unseen(blocks[0]));
    exit(0);
}
