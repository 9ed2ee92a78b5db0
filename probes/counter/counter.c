/* libfreestone-counter.so: counts what a program asks of malloc, in an untimed run.
 *
 * Preloaded behind the witness, which asks it at the end of each process. It takes the place of malloc and hands every
 * request on to glibc's, by the names that glibc keeps for this. What it counts is the program's, whoever serves it: the
 * calls, and the most bytes that were in use at once. */
#define _GNU_SOURCE
#include "counter.h"
#include "glibc_block.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* Relaxed everywhere: they are sums, and order nothing. */
static _Atomic uint64_t calls;
static _Atomic int64_t in_use;
static _Atomic int64_t most_in_use;

static void *given(void *block) {
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (block == NULL)
        return NULL;
    const int64_t bytes = (int64_t)glibc_block_bytes(block);
    const int64_t now = atomic_fetch_add_explicit(&in_use, bytes, memory_order_relaxed) + bytes;
    int64_t most = atomic_load_explicit(&most_in_use, memory_order_relaxed);
    while (now > most && !atomic_compare_exchange_weak_explicit(&most_in_use, &most, now, memory_order_relaxed,
                                                                memory_order_relaxed)) {
    }
    return block;
}

static void taken(int64_t bytes) { atomic_fetch_sub_explicit(&in_use, bytes, memory_order_relaxed); }

EXPORT void *malloc(size_t size) { return given(__libc_malloc(size)); }

EXPORT void *calloc(size_t count, size_t size) { return given(__libc_calloc(count, size)); }

EXPORT void free(void *block) {
    taken((int64_t)glibc_block_bytes(block));
    __libc_free(block);
}

EXPORT void *realloc(void *block, size_t size) {
    const int64_t before = (int64_t)glibc_block_bytes(block);
    void *moved = __libc_realloc(block, size);
    if (moved != NULL || size == 0)
        taken(before);
    return given(moved);
}

EXPORT void *memalign(size_t alignment, size_t size) { return given(__libc_memalign(alignment, size)); }

EXPORT void *aligned_alloc(size_t alignment, size_t size) { return given(__libc_memalign(alignment, size)); }

EXPORT int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    void *found = given(__libc_memalign(alignment, size));
    if (found == NULL)
        return ENOMEM;
    *block = found;
    return 0;
}

EXPORT void *valloc(size_t size) { return given(__libc_memalign((size_t)sysconf(_SC_PAGESIZE), size)); }

EXPORT void *pvalloc(size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > SIZE_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    return given(__libc_memalign(page, (size + page - 1) / page * page));
}

EXPORT size_t malloc_usable_size(void *block) { return glibc_block_bytes(block); }

EXPORT void freestone_counted(struct counted *counted) {
    counted->calls = atomic_load_explicit(&calls, memory_order_relaxed);
    const int64_t most = atomic_load_explicit(&most_in_use, memory_order_relaxed);
    counted->most_bytes = most > 0 ? (uint64_t)most : 0;
}
