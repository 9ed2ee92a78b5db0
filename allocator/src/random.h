/* Numbers that nobody can guess from outside the process; not for cryptography. Leaf. */
#ifndef FREESTONE_RANDOM_H
#define FREESTONE_RANDOM_H

#include "bits.h"

/* The next of a sequence whose state is not 0: xorshift64* (Marsaglia 2003, Vigna 2016). Its high bits are the better ones. */
static inline uint64_t random_next(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(2685821657736338717);
}

/* A number below `most`, which is not 0 and below 2^32. */
static inline uint32_t random_below(uint64_t *state, uint32_t most) {
    return (uint32_t)((random_next(state) >> 32) * most >> 32);
}

/* Stirs a word so that each bit of it tells on all of the result's: the finalizer of MurmurHash3. */
static inline uint64_t random_stir(uint64_t word) {
    word = (word ^ word >> 33) * UINT64_C(0xff51afd7ed558ccd);
    word = (word ^ word >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return word ^ word >> 33;
}

#endif
