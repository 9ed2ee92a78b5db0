/* Who ignores faults and executes another program has that program ignore them too: blocks are guarded meanwhile, and nothing is set.
 *
 *   ignored [executed]      the second is how it executes itself */
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

static bool is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int main(int count, char **arguments) {
    require_serving();
    if (count == 1) {
        (void)signal(SIGSEGV, SIG_IGN);
    }
    for (size_t i = 0; i < 100; i++) {
        free(unseen(malloc(50 + i)));
    }
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    EXPECT(stats.guarded > 0, "no block was guarded");
    EXPECT(is_ignored(SIGSEGV) && !is_ignored(SIGBUS), "%s: SIGSEGV is not ignored, or SIGBUS is",
           count == 1 ? "set" : "executed");
    if (count == 1) {
        (void)execl(arguments[0], arguments[0], "executed", (char *)NULL);
        EXPECT(false, "it cannot be executed again");
    }
    return 0;
}
