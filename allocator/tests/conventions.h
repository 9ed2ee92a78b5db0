/* What other sound allocators do not share with libfreestone: four conventions of glibc's, and that sizes of blocks are few.
 * libfreestone is held to all in every test; where the same program is run under any allocator (tests/hazards), only the
 * hazards that are about them ask for them. */
#ifndef FREESTONE_TESTS_CONVENTIONS_H
#define FREESTONE_TESTS_CONVENTIONS_H

#include <stdbool.h>

#include "entry.h"
#include "expect.h"

/* What malloc of `size` bytes is aligned to: 16; C asks only for what an object of this size can need. */
static inline size_t least_alignment(size_t size) {
    size_t alignment = 16;
#ifdef FREESTONE_TESTS_ANY_ALLOCATOR
    while (alignment > size && alignment > 1) {
        alignment /= 2;
    }
#else
    (void)size;
#endif
    return alignment;
}

/* What a block asked for with `alignment` has to be aligned to: an address where nothing may be lies anywhere. */
static inline size_t alignment_owed(size_t alignment, size_t size) {
#ifdef FREESTONE_TESTS_ANY_ALLOCATOR
    return size == 0 ? 1 : alignment;
#else
    (void)size;
    return alignment;
#endif
}

/* The size to look for the next edge from, beyond `edge`. Where there is one every 16 bytes, each of the 100000 up to
 * 1.5 MiB would take minutes of filling, which nobody's allocator is to blame for. */
static inline size_t beyond_edge(size_t edge) {
#ifdef FREESTONE_TESTS_ANY_ALLOCATOR
    return edge + 1 + edge / 64;
#else
    return edge + 1;
#endif
}

/* Whether NULL is an answer to a request of `size` bytes that was met: to one of nothing, with others. */
static inline bool may_be_null(size_t size) {
#ifdef FREESTONE_TESTS_ANY_ALLOCATOR
    return size == 0;
#else
    (void)size;
    return false;
#endif
}

/* How many bytes realloc carries over of a block of `size` bytes with `usable`: C asks for those that were asked for. */
static inline size_t carried(size_t size, size_t usable) {
#ifdef FREESTONE_TESTS_ANY_ALLOCATOR
    (void)usable;
    return size;
#else
    (void)size;
    return usable;
#endif
}

/* Takes what realloc(p, 0) gave: nothing; with others perhaps a block of its own. */
static inline void take_resized_to_zero(void *left, const char *what) {
#ifdef FREESTONE_TESTS_ANY_ALLOCATOR
    (void)what;
    free(left);
#else
    EXPECT(left == NULL, "%s gave a block", what);
#endif
}

#endif
