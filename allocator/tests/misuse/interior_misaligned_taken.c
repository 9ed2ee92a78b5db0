/* A pointer eight bytes off: nobody is given it. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(48));
    char *inside = block + 8;
    announce("interior pointer: pointer %p, size class 48 bytes", (void *)inside);
    free(unseen(inside));
    (void)unseen(malloc(48));
    _exit(unnoticed());
}
