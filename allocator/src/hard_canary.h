/* Canaries, trailers, zeros: what a slot holds beside the block, and how that is read back. Leaf above random. */
#ifndef FREESTONE_HARD_CANARY_H
#define FREESTONE_HARD_CANARY_H

#include <string.h>

#include "made.h"
#include "random.h"

enum {
    TRAILER_BYTES = 8,
    CANARY_MOST = 64, /* bytes behind a block that are watched: whoever writes on and on passes them */
    TRAILER_SIZE_BITS = 19,
    TRAILER_MADE_BITS = 3,
    TRAILER_GENERATION_BITS = 4,
    TRAILER_TOLD_BITS = TRAILER_SIZE_BITS + TRAILER_MADE_BITS + TRAILER_GENERATION_BITS,
    HARD_GENERATIONS = 1 << TRAILER_GENERATION_BITS,
};

/* The keys of the canaries and trailers, one for each generation: a child of a fork draws a key for the blocks that it makes, and keeps those of
 * its parents for the blocks that it was born with. After 15 forks, each in the child of the one before, the last key serves on. Written
 * by one thread, before others allocate. */
struct hard_secret {
    struct random_key keys[HARD_GENERATIONS];
    uint32_t generation; /* of the blocks that are made now */
};
extern struct hard_secret hard_secret INTERNAL;

static inline uint64_t word_at(const void *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* A word whose byte number 0, as it lies in memory, is its lowest. */
static inline uint64_t word_in_memory(uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(word);
#else
    return word;
#endif
}

/* -- what stands behind a block: a function of the key, the block, its size and how it was made ------------------- */

struct hard_end {
    uint64_t canary; /* eight bytes, by address, each 0x80 to 0xBF */
    uint64_t trailer; /* a byte of that kind, a 0, size, kind and generation, and 22 bits that authenticate them */
};

/* The string's end, a letter, a small number or a -1 is what is most often written one too far: no byte of the canary is one of these. */
static inline uint64_t canary_of(uint64_t hash) {
    return ((hash >> 32 | hash >> 32 << 32) & UINT64_C(0x3F3F3F3F3F3F3F3F)) | UINT64_C(0x8080808080808080);
}

/* Trailer and canary have different bits of the hash, so that neither tells of the other. */
static inline struct hard_end end_of(const void *block, size_t size, enum made made, uint32_t generation) {
    uint64_t told = (uint64_t)size | (uint64_t)made << TRAILER_SIZE_BITS |
                    (uint64_t)generation << (TRAILER_SIZE_BITS + TRAILER_MADE_BITS);
    uint64_t word = (uintptr_t)block >> 4 ^ told << (64 - TRAILER_TOLD_BITS);
    uint64_t hash = random_hash(&hard_secret.keys[generation], word);
    uint64_t proof = hash << (16 + TRAILER_TOLD_BITS), first = (hash >> 22 & 0x3F) | 0x80;
    return (struct hard_end){canary_of(hash), word_in_memory(first | told << 16 | proof)};
}
_Static_assert(MADE_ANYHOW < 1 << TRAILER_MADE_BITS, "the kind fits");
_Static_assert(16 + TRAILER_TOLD_BITS + 22 == 64, "a trailer is a word");

/* False when it is not one that was written for that block. */
static inline bool trailer_read(const void *block, uint64_t trailer, size_t *size, enum made *made, uint64_t *canary) {
    uint64_t told = word_in_memory(trailer) >> 16 & ((1u << TRAILER_TOLD_BITS) - 1);
    uint32_t generation = (uint32_t)(told >> (TRAILER_SIZE_BITS + TRAILER_MADE_BITS));
    *size = (size_t)told & ((1u << TRAILER_SIZE_BITS) - 1);
    *made = (enum made)(told >> TRAILER_SIZE_BITS & ((1u << TRAILER_MADE_BITS) - 1));
    struct hard_end end = end_of(block, *size, *made, generation);
    *canary = end.canary;
    return generation <= hard_secret.generation && trailer == end.trailer;
}

/* -- canaries: from the block's end to a multiple of eight bytes, each byte by its address ------------------------
 *
 * The second byte is 0: who reads a string on beyond a block reads one byte of the canary, and no more. The first is not, since the end of a string
 * that is written one too far would not be seen there. */

/* The bits of a word, as it lies in memory, that belong to its bytes from number `byte` on, of 0 to 7. */
static inline uint64_t bytes_from(unsigned byte) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return ~UINT64_C(0) >> 8 * byte;
#else
    return ~UINT64_C(0) << 8 * byte;
#endif
}

static inline uint64_t byte_number(unsigned byte) { return word_in_memory(UINT64_C(0xFF) << 8 * byte); }

/* The first word of a canary that begins with its byte number `inside`, and the second. */
static inline uint64_t canary_first(uint64_t canary, unsigned inside) {
    return inside < 7 ? canary & ~byte_number(inside + 1) : canary;
}
static inline uint64_t canary_second(uint64_t canary, unsigned inside) {
    return inside < 7 ? canary : canary & ~byte_number(0);
}

static inline void canary_write(uint64_t canary, unsigned char *from, const unsigned char *to) {
    unsigned inside = (uintptr_t)from % 8;
    from -= inside;
    if (from >= to) {
        return;
    }
    uint64_t mask = bytes_from(inside);
    uint64_t word = (word_at(from) & ~mask) | (canary_first(canary, inside) & mask);
    memcpy(from, &word, sizeof word);
    from += 8;
    word = canary_second(canary, inside);
    for (; from < to; from += 8, word = canary) {
        memcpy(from, &word, sizeof word);
    }
}

static inline bool canary_stands(uint64_t canary, const unsigned char *from, const unsigned char *to) {
    unsigned inside = (uintptr_t)from % 8;
    from -= inside;
    if (from >= to) {
        return true;
    }
    uint64_t changed = (word_at(from) ^ canary_first(canary, inside)) & bytes_from(inside);
    from += 8;
    uint64_t word = canary_second(canary, inside);
    for (; from < to; from += 8, word = canary) {
        changed |= word_at(from) ^ word;
    }
    return changed == 0;
}

/* The first byte that is not as it was written; NULL when all are. */
static inline const unsigned char *canary_broken(uint64_t canary, const unsigned char *from, const unsigned char *to) {
    if (likely(canary_stands(canary, from, to))) {
        return NULL;
    }
    const unsigned char *pattern = (const unsigned char *)&canary, *zero = from + 1;
    while (from < to && *from == (from == zero ? 0 : pattern[(uintptr_t)from % 8])) {
        from++;
    }
    return from < to ? from : NULL;
}

/* -- zeros --------------------------------------------------------------------------------------------------- */

/* A slot is cleared by its owner's call, and by the keeper. Of a multiple of 16 bytes. Here, and not by libc's memset: a program may replace that by one
 * that allocates, which would find the cache between two steps, or that needs a thread which libc knows. */
static inline void zero_write(unsigned char *at, size_t bytes) {
    enum { UNIT = 16, UNITS = 4 };
    unsigned char *end = at + bytes;
    for (; (size_t)(end - at) >= (size_t)UNITS * UNIT; at += (size_t)UNITS * UNIT) {
        memset(at, 0, (size_t)UNITS * UNIT);
        __asm__ volatile("" : : "r"(at) : "memory"); /* or a compiler makes a call of memset of it */
    }
    for (; at < end; at += UNIT) {
        memset(at, 0, UNIT);
        __asm__ volatile("" : : "r"(at) : "memory");
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
