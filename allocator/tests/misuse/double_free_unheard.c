/* A small block is freed twice in a program that blocks SIGABRT and has a handler for it that returns: it is stopped all the same. */
#include "misuse.h"

#include <signal.h>

static void go_on(int signal) { (void)signal; }

int main(void) {
    void *block = unseen(malloc(48));
    announce("double free: pointer %p, size class 48 bytes", block);
    sigset_t abort_only;
    sigemptyset(&abort_only);
    sigaddset(&abort_only, SIGABRT);
    EXPECT(signal(SIGABRT, go_on) != SIG_ERR && sigprocmask(SIG_BLOCK, &abort_only, NULL) == 0, "no handler");
    free(block);
    free(unseen(block));
    flush();
    return unnoticed();
}
