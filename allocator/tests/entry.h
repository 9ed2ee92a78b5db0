/* The whole entry surface, declared once: what glibc 2.36 declares, and what only newer ones or C++ do.
 *
 * A program that is to be preloaded is linked without libfreestone, and libc has no definition of some entries:
 * there they are weak, and the dynamic linker fills them in. Everywhere else they are strong, so that a missing one
 * is a link error. */
#ifndef FREESTONE_TESTS_ENTRY_H
#define FREESTONE_TESTS_ENTRY_H

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "freestone.h"

#ifdef __cplusplus
extern "C" {
#endif

void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);

#ifdef __cplusplus
}
#endif

#ifdef FREESTONE_TESTS_PRELOAD
#pragma weak free_sized
#pragma weak free_aligned_sized
#pragma weak freestone_identity
#pragma weak freestone_version
#pragma weak freestone_purge
#pragma weak freestone_check
#pragma weak freestone_stats_read
#pragma weak freestone_stats_json
#pragma weak freestone_set_options
#endif

/* The same value, its origin hidden from the optimizer, which knows what malloc and free promise and would drop
 * pairs of them or warn of the very misuse a test is made of. */
static inline void *unseen(void *pointer) {
    __asm__ volatile("" : "+r"(pointer)::"memory");
    return pointer;
}

static inline size_t unseen_size(size_t size) {
    __asm__ volatile("" : "+r"(size));
    return size;
}

#endif
