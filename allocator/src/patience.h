/* Time waited, nap by nap, by the clock and by counts. A nap that took too long counts only as long as it was to take: the process was stopped perhaps, or
 * the machine is crowded, and others could not run either. A clock that stands still or jumps makes no wait endless. A nap that was slept in full counts
 * in full, and every other as at least a microsecond, which a system call takes. Leaf above os. */
#ifndef FREESTONE_PATIENCE_H
#define FREESTONE_PATIENCE_H

#include "os.h"

struct patience {
    uint64_t seen; /* by the clock, in ns */
    uint64_t waited; /* ns */
};

static inline struct patience patience_begin(void) { return (struct patience){.seen = os_nanoseconds()}; }

/* After a nap of `nap_ms` at most, slept in full if `whole`: whether that was more than `limit_ms` in all. */
static inline bool patience_ended(struct patience *patience, bool whole, uint32_t nap_ms, uint32_t limit_ms) {
    enum { LEAST_NS = 1000 };
    uint64_t now = os_nanoseconds(), nap = (uint64_t)nap_ms * 1000000;
    uint64_t passed = whole ? nap : bits_max(now - patience->seen, LEAST_NS);
    patience->seen = now;
    patience->waited += bits_min(passed, nap);
    return patience->waited > (uint64_t)limit_ms * 1000000;
}

/* Whether a time is still to come that was set at most `most` ahead, both by one clock; not if the clock has jumped back since. */
static inline bool stamp_is_ahead(uint64_t stamp, uint64_t now, uint64_t most) {
    uint64_t left = stamp - now;
    return left != 0 && left <= most;
}

#endif
