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

/* A keyed hash of one word: SipHash-1-3 (Aumasson and Bernstein 2012) without the block that holds the length, since that is
 * always the same. Without the key neither the key nor any other hash follows from the hashes that an attacker reads. */
struct random_key {
    uint64_t word[2];
};

static inline uint64_t random_rotate(uint64_t word, unsigned bits) { return word << bits | word >> (64 - bits); }

static inline void random_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = random_rotate(v[1], 13) ^ v[0];
    v[3] = random_rotate(v[3], 16) ^ v[2];
    v[0] = random_rotate(v[0], 32) + v[3];
    v[2] += v[1];
    v[1] = random_rotate(v[1], 17) ^ v[2];
    v[3] = random_rotate(v[3], 21) ^ v[0];
    v[2] = random_rotate(v[2], 32);
}

static inline uint64_t random_hash(const struct random_key *key, uint64_t word) {
    uint64_t v[4] = {key->word[0] ^ UINT64_C(0x736f6d6570736575), key->word[1] ^ UINT64_C(0x646f72616e646f6d),
                     key->word[0] ^ UINT64_C(0x6c7967656e657261), key->word[1] ^ UINT64_C(0x7465646279746573) ^ word};
    random_round(v);
    v[0] ^= word;
    v[2] ^= 0xFF;
    random_round(v);
    random_round(v);
    random_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Stirs a word so that each bit of it tells on all of the result's: the finalizer of MurmurHash3. */
static inline uint64_t random_stir(uint64_t word) {
    word = (word ^ word >> 33) * UINT64_C(0xff51afd7ed558ccd);
    word = (word ^ word >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return word ^ word >> 33;
}

#endif
