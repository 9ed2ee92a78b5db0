#include "allocator.h"

#include "store.h"

/* noipa: a loop over it must pay for a call, as it does for a call of the real one. */
#define A_CALL __attribute__((noipa))

static _Thread_local struct null_pool pool;

enum { POOLS_MOST = 1 << 20, POOL_ENOUGH = 1 << 16, POOL_LEAST = 1 << 12 };

size_t null_pool_for(uint64_t live_bytes, uint64_t largest, uint64_t threads) {
    const uint64_t share = POOLS_MOST / threads, cap = share < POOL_ENOUGH ? POOL_ENOUGH : share;
    const uint64_t least = largest > POOL_LEAST / 2 ? 2 * ((largest + 15) & ~UINT64_C(15)) : POOL_LEAST;
    const uint64_t wanted = live_bytes < cap ? live_bytes : cap;
    return wanted < least ? least : wanted;
}

void null_open(size_t bytes) {
    unsigned char *start = store_take(bytes);
    pool = (struct null_pool){start, start, start + bytes};
}

void null_close(void) {
    store_return(pool.start, (size_t)(pool.end - pool.start));
    pool = (struct null_pool){0};
}

struct null_pool null_hand_over(void) { return pool; }

void null_take_over(struct null_pool from) { pool = from; }

A_CALL void *null_malloc(size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    unsigned char *block = pool.next;
    if (UNLIKELY(pool.end - block < (ptrdiff_t)bytes)) /* below zero after a block larger than the pool */
        block = pool.start;
    pool.next = block + bytes;
    return block;
}

A_CALL void *null_calloc(size_t count, size_t bytes) { return null_malloc(count * bytes); }

A_CALL void *null_realloc(void *block, size_t bytes) {
    (void)block;
    return null_malloc(bytes);
}

A_CALL void null_free(void *block) { (void)block; }

A_CALL void null_lost(const void *block, size_t bytes, uint64_t owner) {
    (void)block;
    (void)bytes;
    (void)owner;
}

A_CALL void null_not_zero(const void *block, size_t bytes) {
    (void)block;
    (void)bytes;
}
