/* What a workload's loop calls: either the malloc of the process, or a null allocator that only hands back addresses.
 *
 * A loop is an ALWAYS_INLINE function that takes the `allocator` as its first argument; called once with &measured
 * and once with &null_allocator it is compiled twice, each time with direct calls. The second time is the floor: what
 * the loop costs by itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

struct allocator {
    void *(*malloc)(size_t bytes);
    void *(*calloc)(size_t count, size_t bytes);
    void *(*realloc)(void *block, size_t bytes);
    void (*free)(void *block);
    /* A block does not hold what its owner wrote: the end of the program, unless the allocator is the null one. */
    void (*lost)(const void *block, size_t bytes, uint64_t owner);
    /* What calloc returned is not zero: likewise. */
    void (*not_zero)(const void *block, size_t bytes);
};

void block_lost(const void *block, size_t bytes, uint64_t owner) __attribute__((noreturn, cold));
void block_not_zero(const void *block, size_t bytes) __attribute__((noreturn, cold));
void out_of_memory(size_t bytes) __attribute__((noreturn, cold));

/* The null allocator goes round a pool of its thread's own, and lets go of nothing. Blocks it hands out may overlap
 * once it has been round, so its `lost` does nothing. */
void null_open(size_t bytes); /* before its first call in a thread; the pool is written once */
void null_close(void);

/* A pool on its way to another thread: the one that held it calls neither malloc nor free until it has it back. */
struct null_pool {
    unsigned char *start, *next, *end;
};
struct null_pool null_hand_over(void);
void null_take_over(struct null_pool pool);

void *null_malloc(size_t bytes);
void *null_calloc(size_t count, size_t bytes);
void *null_realloc(void *block, size_t bytes);
void null_free(void *block);
void null_lost(const void *block, size_t bytes, uint64_t owner);
void null_not_zero(const void *block, size_t bytes);

/* Defined in every file that includes this, or the compiler could not see the calls through. */
__attribute__((unused)) static const struct allocator measured = {malloc, calloc,     realloc,
                                                                  free,   block_lost, block_not_zero};
__attribute__((unused)) static const struct allocator null_allocator = {null_malloc, null_calloc, null_realloc,
                                                                        null_free,   null_lost,   null_not_zero};

/* The pool of each thread for the floor: as large as what lives at once in its measured loop, but all pools together not
 * so large that they would show in the memory of the program; and always with room for two of the largest blocks. */
size_t null_pool_for(uint64_t live_bytes, uint64_t largest, uint64_t threads);

ALWAYS_INLINE void *take(const struct allocator *a, size_t bytes) {
    void *block = a->malloc(bytes);
    if (UNLIKELY(block == NULL))
        out_of_memory(bytes);
    return block;
}
