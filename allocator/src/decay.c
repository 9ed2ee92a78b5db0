#include "decay.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "bits.h"

enum {
    EARLY_SHARE = 2, /* of a trial taken again: it was purged too early */
    EARLY_TIMES = 2, /* the age at which it was needed: the decay time from then on */
    LATE_SHARE = 8,  /* less than this share: it was not */
};

static uint32_t longest_ms(uint32_t retain_ms) {
    return (uint32_t)bits_max(bits_min((size_t)DECAY_TIMES * retain_ms, DECAY_MOST_MS), retain_ms);
}

uint32_t decay_ms(const struct decay *decay, uint32_t retain_ms) {
    uint32_t adapted = atomic_load_explicit(&decay->adapted, memory_order_relaxed);
    return (uint32_t)bits_max(bits_min(adapted, longest_ms(retain_ms)), retain_ms);
}

static void set_adapted(struct decay *decay, uint32_t milliseconds) {
    atomic_store_explicit(&decay->adapted, milliseconds, memory_order_relaxed);
}

static size_t trial_of(const struct decay *decay) { return atomic_load_explicit(&decay->trial, memory_order_relaxed); }

static void set_trial(struct decay *decay, size_t bytes) {
    atomic_store_explicit(&decay->trial, bytes, memory_order_relaxed);
}

/* Ends a trial of which the time is over. A clock that has jumped back ends it as well. */
static void end_trial(struct decay *decay, uint32_t retain_ms, uint64_t now) {
    size_t trial = trial_of(decay);
    bool under_way = now >= decay->freed && now <= decay->ends;
    if (trial == 0 || under_way) {
        return;
    }
    if (trial >= DECAY_TRIAL && decay->taken < trial / LATE_SHARE) {
        set_adapted(decay, decay_ms(decay, retain_ms) / 2);
    }
    set_trial(decay, 0);
}

void decay_purged(struct decay *decay, uint32_t retain_ms, uint64_t now, uint64_t freed, size_t bytes) {
    end_trial(decay, retain_ms, now);
    size_t trial = trial_of(decay);
    if (trial == 0) {
        decay->taken = 0;
        decay->freed = freed;
        /* A purge takes a while, piece by piece: it is one trial. */
        decay->ends = bits_max(freed + longest_ms(retain_ms), now + retain_ms);
    }
    set_trial(decay, trial + bytes);
}

void decay_taken(struct decay *decay, uint32_t retain_ms, uint64_t now, size_t bytes) {
    end_trial(decay, retain_ms, now);
    size_t trial = trial_of(decay), longest = longest_ms(retain_ms);
    uint64_t age = now - decay->freed;
    if (trial == 0 || age > longest) { /* no decay time would have been long enough */
        return;
    }
    decay->taken += bytes;
    if (trial >= DECAY_TRIAL && decay->taken >= trial / EARLY_SHARE) {
        set_adapted(decay, (uint32_t)bits_min(EARLY_TIMES * (size_t)age, longest));
        set_trial(decay, 0);
    }
}
