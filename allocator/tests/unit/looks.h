/* Looks round the heaps as the keeper and malloc_trim take them, in one go. */
#ifndef FREESTONE_UNIT_LOOKS_H
#define FREESTONE_UNIT_LOOKS_H

#include "heap.h"

static inline size_t look_clean(enum cleaning cleaning, bool *more) {
    enum { SLICES = 64 };
    uint32_t slice = 0;
    size_t bytes = 0;
    do {
        bytes += heap_clean(&slice, SLICES, cleaning, more);
    } while (slice != 0);
    return bytes;
}

/* What the keeper does of a look; see keeping.c. */
static inline size_t look_keep(bool *more) {
    *more = heap_drain_unneeded();
    return look_clean(CLEAN_FOR_KEEPER, more);
}

static inline size_t look_trim(void) {
    bool more = false;
    heap_reclaim();
    return look_clean(CLEAN_ALL, &more);
}

#endif
