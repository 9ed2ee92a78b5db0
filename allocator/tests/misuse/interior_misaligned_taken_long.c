/* A pointer one byte into a block of several kilobytes: calloc gives it to nobody. */
#include "misuse.h"

int main(void) {
    char *block = unseen(malloc(5000));
    char *inside = block + 1;
    announce("interior pointer: pointer %p, size class 5120 bytes", (void *)inside);
    free(unseen(inside));
    (void)unseen(calloc(1, 5000));
    _exit(unnoticed());
}
