/* A planted bug: every 97th block is the one before once more or, with -DSHARED=16, begins that many bytes before its
 * end. Nothing is ever freed. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef SHARED
#define SHARED 0
#endif

static _Alignas(16) unsigned char pool[64 << 20]; /* zeroed, so calloc need not clear */
static _Atomic size_t used, calls;
static _Atomic(void *) before;

void *malloc(size_t bytes) {
    const size_t rounded = (bytes + 15) & ~(size_t)15;
    const size_t at = atomic_fetch_add(&used, rounded);
    if (at + rounded > sizeof pool)
        return NULL;
    const int wrong = atomic_fetch_add(&calls, 1) % 97 == 96 && bytes < 4096;
    if (wrong && SHARED == 0)
        return before;
    before = pool + at;
    return pool + at - (wrong ? SHARED : 0);
}

void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }

void *realloc(void *block, size_t bytes) {
    void *moved = malloc(bytes);
    return moved == NULL || block == NULL ? moved : memmove(moved, block, bytes);
}

void free(void *block) { (void)block; }
