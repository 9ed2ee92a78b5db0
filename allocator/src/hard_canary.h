/* Canaries, trailers, zeros: what a slot holds beside the block, and how that is read back. Leaf above random. */
#ifndef FREESTONE_HARD_CANARY_H
#define FREESTONE_HARD_CANARY_H

#include <string.h>

#include "made.h"
#include "random.h"

/* Drawn once for each process and its children. */
struct hard_secret {
    uint64_t pattern; /* each byte is 0x80 to 0xFE */
    uint64_t mask, factor; /* both odd */
};
extern struct hard_secret hard_secret INTERNAL;

enum {
    TRAILER_BYTES = 8,
    CANARY_MOST = 64, /* bytes behind a block that are watched: whoever writes on and on passes them */
    TRAILER_SIZE_BITS = 19,
};

static inline uint64_t word_at(const void *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* -- canaries: from the block's end to a multiple of eight bytes, each byte by its address ---------------------- */

/* The bits of a word, as it lies in memory, that belong to its bytes from number `byte` on. */
static inline uint64_t bytes_from(unsigned byte) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return ~UINT64_C(0) >> 8 * byte;
#else
    return ~UINT64_C(0) << 8 * byte;
#endif
}

static inline void canary_write(unsigned char *from, const unsigned char *to) {
    unsigned inside = (uintptr_t)from % 8;
    from -= inside;
    if (from < to) {
        uint64_t mask = bytes_from(inside);
        uint64_t word = (word_at(from) & ~mask) | (hard_secret.pattern & mask);
        memcpy(from, &word, sizeof word);
    }
    for (from += 8; from < to; from += 8) {
        memcpy(from, &hard_secret.pattern, sizeof hard_secret.pattern);
    }
}

static inline bool canary_stands(const unsigned char *from, const unsigned char *to) {
    unsigned inside = (uintptr_t)from % 8;
    from -= inside;
    uint64_t changed = from < to ? (word_at(from) ^ hard_secret.pattern) & bytes_from(inside) : 0;
    for (from += 8; from < to; from += 8) {
        changed |= word_at(from) ^ hard_secret.pattern;
    }
    return changed == 0;
}

/* The first byte that is not as it was written; NULL when all are. */
static inline const unsigned char *canary_broken(const unsigned char *from, const unsigned char *to) {
    const unsigned char *pattern = (const unsigned char *)&hard_secret.pattern;
    if (likely(canary_stands(from, to))) {
        return NULL;
    }
    while (from < to && *from == pattern[(uintptr_t)from % 8]) {
        from++;
    }
    return from < to ? from : NULL;
}

/* -- trailers: a byte of the canary, then size and kind, masked, then what authenticates them ------------------ */

static inline uint64_t trailer_of(const void *block, size_t size, enum made made) {
    uint64_t told = (uint64_t)size | (uint64_t)made << TRAILER_SIZE_BITS;
    uint64_t place = ((uintptr_t)block ^ hard_secret.mask) * hard_secret.factor;
    uint64_t proof = (place ^ told * hard_secret.factor) * hard_secret.mask >> 32;
    uint64_t masked = (told ^ place >> 40) & 0xFFFFFF;
    return (hard_secret.pattern & 0xFF) | masked << 8 | proof << 32;
}
_Static_assert(MADE_ANYHOW < 1 << (24 - TRAILER_SIZE_BITS), "size and kind fit into 24 bits");

/* False when it is not one that was written for that block. */
static inline bool trailer_read(const void *block, uint64_t trailer, size_t *size, enum made *made) {
    uint64_t place = ((uintptr_t)block ^ hard_secret.mask) * hard_secret.factor;
    uint64_t told = (trailer >> 8 ^ place >> 40) & 0xFFFFFF;
    *size = (size_t)told & ((1u << TRAILER_SIZE_BITS) - 1);
    *made = (enum made)(told >> TRAILER_SIZE_BITS);
    return *made < MADE_ANYHOW && trailer == trailer_of(block, *size, *made);
}

/* -- zeros --------------------------------------------------------------------------------------------------- */

/* A slot is cleared by its owner's call: small ones here, since a call would cost more. Of a multiple of 16 bytes. */
static inline void zero_write(unsigned char *at, size_t bytes) {
    enum { UNIT = 16, MOST = 256 };
    if (bytes > MOST) {
        memset(at, 0, bytes);
        return;
    }
    for (size_t done = 0; done < bytes; done += UNIT) {
        memset(at + done, 0, UNIT);
    }
}

/* The first byte that is not 0, of so many, a multiple of 16; NULL when all are. */
static inline const unsigned char *zero_broken(const unsigned char *at, size_t bytes) {
    const unsigned char *end = at + bytes;
    uint64_t any = 0;
    while (any == 0 && end - at >= 64) {
        for (unsigned word = 0; word < 8; word++) {
            any |= word_at(at + (size_t)8 * word);
        }
        at += any == 0 ? 64 : 0;
    }
    for (const unsigned char *rest = at; any == 0 && rest < end; rest += 16) {
        any |= word_at(rest) | word_at(rest + 8);
    }
    if (likely(any == 0)) {
        return NULL;
    }
    while (*at == 0) {
        at++;
    }
    return at;
}

#endif
