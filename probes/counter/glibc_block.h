/* The bytes that a block of glibc's holds, read off the size word before it.
 *
 * Not by malloc_usable_size: in a program that was linked against another allocator (redis-server and jemalloc) that name
 * is bound to the other one's, which knows nothing of glibc's blocks. */
#ifndef FREESTONE_COUNTER_GLIBC_BLOCK_H
#define FREESTONE_COUNTER_GLIBC_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

/* In a mapping of its own: the second bit of the size word. */
static inline bool glibc_block_is_mapped(const void *block) { return (((const size_t *)block)[-1] & 2) != 0; }

/* 0 for NULL. A block reaches into the word behind it, which a mapping of its own does not have. */
static inline size_t glibc_block_bytes(const void *block) {
    if (block == NULL)
        return 0;
    const size_t whole = ((const size_t *)block)[-1] & ~(size_t)7;
    return whole - (glibc_block_is_mapped(block) ? 2 : 1) * sizeof(size_t);
}

#endif
