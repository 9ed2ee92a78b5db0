/* A small block is freed twice in a program that ignores SIGABRT: it is stopped all the same. */
#include "misuse.h"

#include <signal.h>

int main(void) {
    void *block = unseen(malloc(48));
    announce("double free: pointer %p, size class 48 bytes", block);
    EXPECT(signal(SIGABRT, SIG_IGN) != SIG_ERR, "not ignored");
    free(block);
    free(unseen(block));
    flush();
    return unnoticed();
}
