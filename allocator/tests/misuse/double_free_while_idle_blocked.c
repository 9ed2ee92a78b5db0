/* What the keeper finds ends the program by SIGABRT also where each of its threads blocks that signal, and a handler is there for it. */
#include <signal.h>

#include "while_idle.h"

static void on_abort(int number) {
    (void)number;
    static const char line[] = "a blocked signal was handled\n";
    ssize_t written = write(STDERR_FILENO, line, sizeof line - 1);
    (void)written;
}

int main(void) {
    sigset_t abort_only;
    sigemptyset(&abort_only);
    sigaddset(&abort_only, SIGABRT);
    EXPECT(signal(SIGABRT, on_abort) != SIG_ERR && sigprocmask(SIG_BLOCK, &abort_only, NULL) == 0, "no handler");
    return free_twice_and_sleep("");
}
