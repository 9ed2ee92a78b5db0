/* Size classes: 16-byte steps to 128 bytes, then four per doubling to 256 KiB, and one between 4 and 5 KiB for what many
 * programs ask for: a page of 4 KiB with a header of their own (SQLite: 4,368 bytes). Leaf.
 *
 * Worst rounding is 15 bytes up to 128 (17 -> 32) and 25 % above (one byte more than a power of two); the mean over
 * uniformly spread sizes is 7.9 % of the block. Eight per doubling above 4 KiB were tried: docs/design/slabs.md has
 * the measurement. allocator/tests/unit/test_size_class.c derives every table below again. */
#ifndef FREESTONE_SIZE_CLASS_H
#define FREESTONE_SIZE_CLASS_H

#include "bits.h"

enum {
    CLASS_COUNT = 53,
    CLASS_STEP_BITS = 4, /* blocks are multiples of 16 bytes, the ABI's alignment of malloc */
    CLASS_LARGEST = 256 * 1024,
    CLASS_PAGE = 4096 + 512, /* the one beside the four per doubling */
    CLASS_FRESH = 4096, /* slabs of blocks of this many bytes and more know which blocks were never taken */
    SLICE_BITS = 16,
    SLICE_BYTES = 1 << SLICE_BITS,
};

/* Bytes in a block of each class. */
static const uint32_t class_bytes[CLASS_COUNT] = {
    16,    32,    48,    64,    80,    96,     112,    128,    160,    192,    224,    256,   320,   384,
    448,   512,   640,   768,   896,   1024,   1280,   1536,   1792,   2048,   2560,   3072,  3584,  4096,
    4608,  5120,  6144,  7168,  8192,  10240,  12288,  14336,  16384,  20480,  24576,  28672, 32768, 40960,
    49152, 57344, 65536, 81920, 98304, 114688, 131072, 163840, 196608, 229376, 262144,
};

/* Slices in a slab of each class: the fewest that hold at least 32 blocks of up to 8 KiB, 16 of up to 16 KiB, 8 of up to
 * 64 KiB, 4 of more, and waste at most 1/16. Fewer blocks a slab were measured: taking and giving back slabs then costs
 * as much as the blocks themselves. */
static const uint8_t class_slices[CLASS_COUNT] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  2,  2,  2,
    2, 3, 3, 3, 4, 4, 3, 3, 4, 4, 3, 3, 4, 4, 5, 6, 7, 8, 5, 6, 7, 8, 10, 12, 14, 16,
};

/* The class whose blocks are the smallest that hold `size` bytes; `size` is 1 to CLASS_LARGEST. */
static inline unsigned class_of(size_t size) {
    size_t last = size - 1;
    if (last < 128) {
        return (unsigned)(last >> CLASS_STEP_BITS);
    }
    unsigned doubling = bits_highest(last); /* 7 for 129..256 */
    return 8 + (doubling - 7) * 4 + (unsigned)((last >> (doubling - 2)) & 3) + (last >= CLASS_PAGE);
}

/* Blocks in a slab of the class: 4 to 4096. */
static inline uint32_t class_blocks(unsigned class) {
    return (uint32_t)class_slices[class] * SLICE_BYTES / class_bytes[class];
}

/* ceil(2^32 / block size) of each class. For an offset that is a multiple of the block size, (offset * this) >> 32 is the block's
 * number: the error is below number * size / 2^32 < 1, since number <= 4096 and size <= 2^18. For any other offset
 * the product names some number whose block does not start there, which is how interior pointers are told.
 *
 * In slabs of one slice the product's low 32 bits tell it alone: they are less than the reciprocal exactly at a block's start. There
 * they are number * (size * reciprocal - 2^32), below the slab's 2^16 bytes, and the reciprocals of such blocks, of 2 KiB and
 * less, are 2^21 and more; anywhere else they are one to size - 1 reciprocals more, which still stays below 2^32. */
#define R(bytes) (uint32_t)(((UINT64_C(1) << 32) + (bytes) - 1) / (bytes))
static const uint32_t class_reciprocals[CLASS_COUNT] = {
    R(16),    R(32),    R(48),    R(64),     R(80),     R(96),     R(112),    R(128),    R(160),    R(192),   R(224),
    R(256),   R(320),   R(384),   R(448),    R(512),    R(640),    R(768),    R(896),    R(1024),   R(1280),  R(1536),
    R(1792),  R(2048),  R(2560),  R(3072),   R(3584),   R(4096),   R(4608),   R(5120),   R(6144),   R(7168),  R(8192),
    R(10240), R(12288), R(14336), R(16384),  R(20480),  R(24576),  R(28672),  R(32768),  R(40960),  R(49152), R(57344),
    R(65536), R(81920), R(98304), R(114688), R(131072), R(163840), R(196608), R(229376), R(262144),
};
#undef R

#endif
