/* Time waited, nap by nap. A nap that took longer than it was meant to counts as long as it was meant to: the process was stopped perhaps, or
 * the machine is crowded, and others could not run either. Leaf above os. */
#ifndef FREESTONE_PATIENCE_H
#define FREESTONE_PATIENCE_H

#include "os.h"

struct patience {
    uint64_t seen; /* by the clock, in ns */
    uint64_t waited; /* ns */
};

static inline struct patience patience_begin(void) { return (struct patience){.seen = os_nanoseconds()}; }

/* After a nap of `nap_ms` at most: whether that was more than `limit_ms` in all. */
static inline bool patience_ended(struct patience *patience, uint32_t nap_ms, uint32_t limit_ms) {
    uint64_t now = os_nanoseconds(), passed = now - patience->seen, nap = (uint64_t)nap_ms * 1000000;
    patience->seen = now;
    patience->waited += passed < nap ? passed : nap;
    return patience->waited > (uint64_t)limit_ms * 1000000;
}

#endif
