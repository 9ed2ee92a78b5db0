/* A program may survive by a handler of SIGABRT that jumps out, and free on: the second line is without the next step that the first has told. */
#include <setjmp.h>
#include <signal.h>

#include "misuse.h"

static sigjmp_buf survived;

static void jump(int number) {
    (void)signal(number, SIG_DFL);
    siglongjmp(survived, 1);
}

int main(void) {
    static char object[64];
    void *block = unseen(malloc(40));
    announce("double free: pointer %p, size class 48 bytes", block);
    EXPECT(signal(SIGABRT, jump) != SIG_ERR, "no handler");
    if (sigsetjmp(survived, 1) == 0) {
        free(block);
        free(unseen(block));
        flush();
        return unnoticed();
    }
    EXPECT(dprintf(STDOUT_FILENO, "\nfreestone: foreign pointer: pointer %p was not allocated here", (void *)object) >
               0,
           "standard output takes nothing");
    free(unseen(object + 0));
    return unnoticed();
}
