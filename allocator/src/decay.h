/* The decay time: how long freed spans are retained before they are purged. It is longer for a program that works in
 * batches, and so takes memory again soon after it was purged. Leaf. The arena's lock protects all but the atomics.
 *
 * Spans that were purged for their age are on trial until they would be as old as the longest decay time. They were
 * purged too early if half as many bytes of fresh memory are taken meanwhile: the decay time becomes twice the age at
 * which they were needed. If less than an eighth is taken, the decay time is halved. */
#ifndef FREESTONE_DECAY_H
#define FREESTONE_DECAY_H

#include <stddef.h>
#include <stdint.h>

enum {
    DECAY_TIMES = 6, /* retain_ms: the longest decay time, */
    DECAY_MOST_MS = 6000, /* but no longer than this, unless retain_ms is: memory is back after 15 idle seconds */
    DECAY_TRIAL = 1024 * 1024, /* bytes: chance decides below that */
};

struct decay {
    _Atomic uint32_t
        adapted; /* milliseconds; retain_ms holds if that is longer. Relaxed: a stale value delays a purge */
    _Atomic size_t trial; /* bytes purged on trial; 0: none. Relaxed: a hint for threads without the lock */
    size_t taken; /* bytes of fresh memory since the trial began */
    uint64_t freed, ends; /* milliseconds: when the first of them were freed, and when the trial ends */
};

/* The decay time in milliseconds, in a program that has set `retain_ms`. Needs no lock. */
uint32_t decay_ms(const struct decay *decay, uint32_t retain_ms);

/* Spans of `bytes` bytes, freed at `freed`, were purged because they had aged. */
void decay_purged(struct decay *decay, uint32_t retain_ms, uint64_t now, uint64_t freed, size_t bytes);

/* Fresh memory of `bytes` bytes is taken: no retained span was long enough. */
void decay_taken(struct decay *decay, uint32_t retain_ms, uint64_t now, size_t bytes);

#endif
