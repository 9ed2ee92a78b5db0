/* Every block carries its owner's mark in its first and last eight bytes from malloc to free: an allocator that hands
 * out the same block twice, or writes its own data into a block in use, is found out. Off the clock a block can be
 * filled with the mark, which also finds two blocks that share a few bytes. */
#pragma once

#include "allocator.h"

enum { BLOCK_LEAST = 8 }; /* bytes: room for one mark */

/* Differs from owner to owner and from size to size in every byte. */
ALWAYS_INLINE uint64_t block_mark(uint64_t owner, size_t bytes) {
    return (owner + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ bytes * UINT64_C(0xC2B2AE3D27D4EB4F);
}

/* volatile: the compiler knows that malloc's blocks do not overlap and would not look at the memory again. A struct of
 * one member and no alignment: the last mark stands wherever the block ends. */
struct __attribute__((packed, may_alias)) block_word {
    uint64_t value;
};

ALWAYS_INLINE void block_put(void *at, uint64_t value) { ((volatile struct block_word *)at)->value = value; }

ALWAYS_INLINE uint64_t block_get(const void *at) { return ((const volatile struct block_word *)at)->value; }

ALWAYS_INLINE void *block_end(const void *block, size_t bytes) {
    return (unsigned char *)(uintptr_t)block + bytes - sizeof(struct block_word);
}

/* Write the marks; `bytes` is at least BLOCK_LEAST. */
ALWAYS_INLINE void block_sign(void *block, size_t bytes, uint64_t owner) {
    const uint64_t mark = block_mark(owner, bytes);
    block_put(block, mark);
    block_put(block_end(block, bytes), mark);
}

/* Read the marks; returns what was expected, for the checksum. */
ALWAYS_INLINE uint64_t block_check(const struct allocator *a, const void *block, size_t bytes, uint64_t owner) {
    const uint64_t mark = block_mark(owner, bytes);
    if (UNLIKELY(block_get(block) != mark || block_get(block_end(block, bytes)) != mark))
        a->lost(block, bytes, owner);
    return mark;
}

/* The same with every whole word between the first and the last. */
ALWAYS_INLINE void block_fill(void *block, size_t bytes, uint64_t owner) {
    block_sign(block, bytes, owner);
    for (size_t at = sizeof(uint64_t); at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t))
        block_put((unsigned char *)block + at, block_mark(owner, bytes));
    block_put(block_end(block, bytes), block_mark(owner, bytes));
}

ALWAYS_INLINE uint64_t block_check_fill(const struct allocator *a, const void *block, size_t bytes, uint64_t owner) {
    const uint64_t mark = block_check(a, block, bytes, owner);
    /* The last mark may lie across the last whole word. */
    for (size_t at = sizeof(uint64_t); at + 2 * sizeof(uint64_t) <= bytes; at += sizeof(uint64_t))
        if (UNLIKELY(block_get((const unsigned char *)block + at) != mark))
            a->lost(block, bytes, owner);
    return mark;
}

/* malloc and sign. */
ALWAYS_INLINE void *block_take(const struct allocator *a, size_t bytes, uint64_t owner) {
    void *block = take(a, bytes);
    block_sign(block, bytes, owner);
    return block;
}

/* check and free. */
ALWAYS_INLINE uint64_t block_give(const struct allocator *a, void *block, size_t bytes, uint64_t owner) {
    const uint64_t mark = block_check(a, block, bytes, owner);
    a->free(block);
    return mark;
}

/* The checksum of one more block; the order counts. */
ALWAYS_INLINE uint64_t checksum_add(uint64_t checksum, uint64_t mark) {
    return (checksum ^ mark) * UINT64_C(0xFF51AFD7ED558CCD);
}
