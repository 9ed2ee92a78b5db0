/* The pattern of a block that may be too large to be touched whole: of its beginning, up to a bound, and of its last page to the last byte. */
#ifndef FREESTONE_TESTS_PATTERN_ENDS_H
#define FREESTONE_TESTS_PATTERN_ENDS_H

#include "pattern.h"

enum { PATTERN_TAIL = 4096 };

static inline size_t pattern_head(size_t size, size_t most) { return size < most ? size : most; }

/* Where the tail begins that is looked at; the end of the beginning, where that reaches into the last page. */
static inline size_t pattern_tail(size_t size, size_t most) {
    size_t head = pattern_head(size, most);
    return size - head < PATTERN_TAIL ? head : size - PATTERN_TAIL;
}

static inline void pattern_fill_ends(void *block, size_t size, size_t most, uint64_t id) {
    pattern_fill(block, 0, pattern_head(size, most), id);
    pattern_fill(block, pattern_tail(size, most), size, id);
}

/* Of a block that was filled at `filled` bytes, and has `size` or more now. */
static inline size_t pattern_mismatch_ends(const void *block, size_t filled, size_t size, size_t most, uint64_t id) {
    size_t end = filled < size ? filled : size;
    size_t mismatch = pattern_mismatch(block, pattern_head(end, most), id);
    return mismatch == SIZE_MAX ? pattern_mismatch_from(block, pattern_tail(filled, most), end, id) : mismatch;
}

#endif
