/* What of a block is known to read as zero, so that calloc need not write it. Leaf. */
#ifndef FREESTONE_ZEROS_H
#define FREESTONE_ZEROS_H

#include <stdint.h>

/* Bytes [from, to) of the block; none where both are 0. */
struct zeros {
    uint32_t from, to;
};

#endif
