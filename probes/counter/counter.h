/* What the counter says to the witness, which finds it only where both are preloaded. */
#ifndef FREESTONE_COUNTER_H
#define FREESTONE_COUNTER_H

#include <stdint.h>

struct counted {
    uint64_t calls;      /* of malloc, calloc, realloc and their aligned kin */
    uint64_t most_bytes; /* in use at once, as the allocator rounds them */
};

void freestone_counted(struct counted *counted);

#endif
