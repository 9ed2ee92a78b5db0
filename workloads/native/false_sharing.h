/* The loop that cache-scratch and cache-thrash have in common: each thread allocates a small block, writes it many times
 * and frees it, over and over. When blocks of two threads lie in one cache line, the writes of one stall the other. */
#pragma once

#include "block.h"

/* Returns a checksum of what the writes left; a block's bytes count from zero. */
ALWAYS_INLINE uint64_t write_often(const struct allocator *a, uint64_t iterations, uint64_t repetitions, size_t bytes) {
    uint64_t checksum = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        volatile unsigned char *block = take(a, bytes);
        for (size_t at = 0; at < bytes; at++)
            block[at] = 0;
        for (uint64_t repetition = 0; repetition < repetitions; repetition++)
            for (size_t at = 0; at < bytes; at++)
                block[at]++;
        const unsigned char expected = (unsigned char)(repetitions & 0xFF);
        if (UNLIKELY(block[0] != expected || block[bytes - 1] != expected))
            a->lost((const void *)block, bytes, i);
        checksum = checksum_add(checksum, expected);
        a->free((void *)block);
    }
    return checksum;
}
