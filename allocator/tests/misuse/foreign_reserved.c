/* An address the library has reserved and never handed out. */
#include "misuse.h"

int main(void) {
    /* 64 GiB on: within the reservation, and far beyond all that a program this small was given. */
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    char *block = unseen(malloc(48));
    char *beyond = block + ((uintptr_t)64 << 30);
    if (stats.reserved < (size_t)128 << 30) {
        expect_skip("only %zu bytes are reserved here", stats.reserved);
    }
    announce("foreign pointer: pointer %p was not allocated here", (void *)beyond);
    free(unseen(beyond));
    return unnoticed();
}
