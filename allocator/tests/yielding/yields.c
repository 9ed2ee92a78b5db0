#include "yields.h"

#undef __atomic_fetch_add

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    YIELD_BITS = 6, /* one operation in 64 lets another thread go first, */
    LONG_BITS = 13, /* one in 8192 many times over, so that others get far */
    LONG_YIELDS = 40,
};

/* Touches nothing thread-local, errno included (this call never fails): of that the keeper has none. */
static void yield(unsigned times) {
    for (; times > 0; times--) {
        (void)syscall(SYS_sched_yield);
    }
}

void yields_now(void) {
    static uint32_t steps; /* of all threads; relaxed, so that it orders nothing */
    uint32_t random = __atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED) * UINT32_C(2654435761);
    random ^= random >> 15;
    random *= UINT32_C(2246822519);
    random ^= random >> 13;
    if ((random & ((1u << LONG_BITS) - 1)) == 0) {
        yield(LONG_YIELDS);
    } else if ((random & ((1u << YIELD_BITS) - 1)) == 0) {
        yield(1);
    }
}
