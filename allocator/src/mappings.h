/* Mappings by address: a tree of rows, which stay where they are.
 *
 * A treap: by addresses it is a search tree, and no row has been drawn a higher `chance` than the one above it. So it is as deep as if the
 * rows had come in an order by chance, whatever order the kernel gives addresses in: what is looked for, comes or goes passes about twice the
 * binary logarithm of their number (Seidel and Aragon 1996).
 *
 * Nothing here is locked. Row 0 stands for none. */
#ifndef FREESTONE_MAPPINGS_H
#define FREESTONE_MAPPINGS_H

#include "bits.h"

struct mapping {
    uintptr_t start;
    size_t bytes;
    size_t used; /* of them, from the start to the end of the page with the block's last byte */
    size_t offset; /* from the start to the block */
    uint8_t watched; /* enum watch of arena.h */
};

struct mapping_row {
    struct mapping mapping; /* starts at 0 while the row is free */
    uint32_t lower, higher; /* rows; of a free one: the next free, and nothing */
    uint64_t chance;
};

struct mappings {
    struct mapping_row *row;
    uint32_t root;
    uint32_t unused; /* free rows that were in use before */
    size_t begun; /* rows up to the highest that was ever in use, row 0 counted */
    size_t count; /* rows in use */
    uint64_t drawn; /* chances */
};

/* The mapping with the highest start up to `at`; NULL where there is none. */
struct mapping *mappings_up_to(const struct mappings *mappings, uintptr_t at);

/* Rows that a mapping to come may need: there have to be more in `row` than this. */
static inline size_t mappings_rows(const struct mappings *mappings) { return mappings->count + 1; }

/* There is a row left for it, and no mapping with that start. */
void mappings_add(struct mappings *mappings, struct mapping mapping);

/* One of those that are there. */
void mappings_remove(struct mappings *mappings, uintptr_t start);

#endif
