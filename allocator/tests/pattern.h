/* Bytes that only one block can hold: a stream derived from a block's number, written into it when it is handed out
 * and checked when it comes back. Two blocks that overlap cannot both keep theirs. */
#ifndef FREESTONE_TESTS_PATTERN_H
#define FREESTONE_TESTS_PATTERN_H

#include <stdint.h>
#include <stddef.h>
#include <string.h>

/* The next of a sequence of 64-bit values with good low and high bits (Steele, Lea, Flood 2014: splitmix). */
static inline uint64_t pattern_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform enough in [0, bound) for tests; `bound` is not 0. */
static inline size_t pattern_below(uint64_t *state, size_t bound) { return (size_t)(pattern_random(state) % bound); }

/* The eight bytes of block `id` at word `index`. Depends on the place, so that shifted contents are found too. */
static inline uint64_t pattern_word(uint64_t id, size_t index) {
    return (id * UINT64_C(0xd6e8feb86659fd93)) ^ ((uint64_t)index * UINT64_C(0x9e3779b97f4a7c15));
}

/* Where the piece that begins at byte `at` ends: with its word, or at `to`. */
static inline size_t pattern_piece_end(size_t at, size_t to) {
    size_t end = at / 8 * 8 + 8;
    return end < to ? end : to;
}

/* Writes the stream of `id` from byte `from` to byte `to`, which may be odd. Whole words without a call for each: the
 * tests are compiled with -fno-builtin, and most of their time went there. */
static inline void pattern_fill(void *block, size_t from, size_t to, uint64_t id) {
    unsigned char *bytes = (unsigned char *)block;
    for (size_t at = from, end; at < to; at = end) {
        for (; at % 8 == 0 && to - at >= 8; at += 8) {
            uint64_t word = pattern_word(id, at / 8);
            __builtin_memcpy(bytes + at, &word, 8);
        }
        uint64_t word = pattern_word(id, at / 8);
        end = pattern_piece_end(at, to);
        memcpy(bytes + at, (const unsigned char *)&word + at % 8, end - at);
    }
}

/* Offset of the first piece of a word that differs from the stream of `id` from byte `from` to the last before `to`;
 * SIZE_MAX when none does. */
static inline size_t pattern_mismatch_from(const void *block, size_t from, size_t to, uint64_t id) {
    const unsigned char *bytes = (const unsigned char *)block;
    for (size_t at = from, end; at < to; at = end) {
        for (; at % 8 == 0 && to - at >= 8; at += 8) {
            uint64_t word;
            __builtin_memcpy(&word, bytes + at, 8);
            if (word != pattern_word(id, at / 8)) {
                return at;
            }
        }
        uint64_t word = pattern_word(id, at / 8);
        end = pattern_piece_end(at, to);
        if (memcmp(bytes + at, (const unsigned char *)&word + at % 8, end - at) != 0) {
            return at;
        }
    }
    return SIZE_MAX;
}

/* The same of the first `size` bytes. */
static inline size_t pattern_mismatch(const void *block, size_t size, uint64_t id) {
    return pattern_mismatch_from(block, 0, size, id);
}

/* Offset of the first byte that is not zero; SIZE_MAX when all are. */
static inline size_t pattern_not_zero(const void *block, size_t size) {
    const unsigned char *bytes = (const unsigned char *)block;
    static const unsigned char zeros[4096] = {0};
    for (size_t at = 0; at < size; at += sizeof zeros) {
        size_t piece = size - at < sizeof zeros ? size - at : sizeof zeros;
        if (memcmp(bytes + at, zeros, piece) != 0) {
            while (bytes[at] == 0) {
                at++;
            }
            return at;
        }
    }
    return SIZE_MAX;
}

#endif
