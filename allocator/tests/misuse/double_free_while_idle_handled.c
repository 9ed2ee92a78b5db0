/* What the keeper finds is told to the program's own handler of SIGABRT on a thread of the program's, where it may do what handlers do: what is
 * the thread's own is there, and memory can be had. */
#include <errno.h>
#include <signal.h>

#include "while_idle.h"

static _Thread_local int own = 42;

static void on_abort(int number) {
    errno = 0;
    void *block = unseen(malloc(1000));
    const char *line = own == 42 && block != NULL && errno == 0 ? "handled\n" : "handled, but not on a thread\n";
    free(block);
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written;
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

int main(void) {
    EXPECT(signal(SIGABRT, on_abort) != SIG_ERR, "no handler");
    return free_twice_and_sleep("\nhandled");
}
