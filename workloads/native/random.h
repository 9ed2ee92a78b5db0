/* Pseudo-random numbers with fixed seeds, the same on every machine. The generator is xoshiro256** of Blackman and Vigna
 * ("Scrambled Linear Pseudorandom Number Generators", 2018), seeded by splitmix64 (Steele, Lea, Flood, 2014). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

static inline uint64_t random_rotate(uint64_t value, int by) { return value << by | value >> (64 - by); }

static inline void random_seed(struct random *r, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9E3779B97F4A7C15);
        uint64_t z = seed;
        z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
        r->state[i] = z ^ z >> 31;
    }
}

static inline uint64_t random_next(struct random *r) {
    uint64_t *s = r->state;
    const uint64_t result = random_rotate(s[1] * 5, 7) * 9;
    const uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = random_rotate(s[3], 45);
    return result;
}

/* From 0 to below `bound`, which is at most 2^32; the bias is below bound / 2^32. */
static inline uint32_t random_below(struct random *r, uint64_t bound) {
    return (uint32_t)((random_next(r) >> 32) * bound >> 32);
}

/* From `least` to `most`, both included. */
static inline uint32_t random_between(struct random *r, uint64_t least, uint64_t most) {
    return (uint32_t)(least + random_below(r, most - least + 1));
}

/* So many of them. */
static inline void random_sizes(struct random *r, uint32_t *sizes, size_t count, uint64_t least, uint64_t most) {
    for (size_t i = 0; i < count; i++)
        sizes[i] = random_between(r, least, most);
}

/* 0 to count - 1 in random order (Fisher and Yates). */
static inline void random_order(struct random *r, uint32_t *order, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const size_t j = random_below(r, i + 1);
        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
}
