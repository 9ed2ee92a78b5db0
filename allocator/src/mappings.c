#include "mappings.h"

#include "random.h"

struct mapping *mappings_up_to(const struct mappings *mappings, uintptr_t at) {
    struct mapping_row *rows = mappings->row, *found = NULL;
    for (uint32_t i = mappings->root; i != 0;) {
        bool below = rows[i].mapping.start <= at;
        found = below ? &rows[i] : found;
        i = below ? rows[i].higher : rows[i].lower;
    }
    return found == NULL ? NULL : &found->mapping;
}

static uint32_t take_row(struct mappings *mappings) {
    uint32_t row = mappings->unused;
    if (row == 0) {
        mappings->begun += mappings->begun == 0; /* row 0 */
        return (uint32_t)mappings->begun++;
    }
    mappings->unused = mappings->row[row].lower;
    return row;
}

/* Parts the rows from `rest` on: those that start below `start` become the lower ones of `row`, the others its higher ones. */
static void part(struct mapping_row *rows, uint32_t rest, uint32_t row, uintptr_t start) {
    uint32_t *lower = &rows[row].lower, *higher = &rows[row].higher;
    while (rest != 0) {
        if (rows[rest].mapping.start < start) {
            *lower = rest;
            lower = &rows[rest].higher;
            rest = *lower;
        } else {
            *higher = rest;
            higher = &rows[rest].lower;
            rest = *higher;
        }
    }
    *lower = *higher = 0;
}

void mappings_add(struct mappings *mappings, struct mapping mapping) {
    struct mapping_row *rows = mappings->row;
    uint32_t row = take_row(mappings);
    uint64_t chance = random_stir(++mappings->drawn);
    uint32_t *link = &mappings->root;
    while (*link != 0 && rows[*link].chance >= chance) {
        link = mapping.start < rows[*link].mapping.start ? &rows[*link].lower : &rows[*link].higher;
    }
    part(rows, *link, row, mapping.start);
    rows[row].chance = chance;
    rows[row].mapping = mapping;
    *link = row;
    mappings->count++;
}

/* Joins two parts of which one lies below the other, as what `link` leads to. */
static void join(struct mapping_row *rows, uint32_t *link, uint32_t lower, uint32_t higher) {
    while (lower != 0 && higher != 0) {
        if (rows[lower].chance >= rows[higher].chance) {
            *link = lower;
            link = &rows[lower].higher;
            lower = *link;
        } else {
            *link = higher;
            link = &rows[higher].lower;
            higher = *link;
        }
    }
    *link = lower != 0 ? lower : higher;
}

void mappings_remove(struct mappings *mappings, uintptr_t start) {
    struct mapping_row *rows = mappings->row;
    uint32_t *link = &mappings->root;
    while (rows[*link].mapping.start != start) {
        link = start < rows[*link].mapping.start ? &rows[*link].lower : &rows[*link].higher;
    }
    uint32_t row = *link;
    join(rows, link, rows[row].lower, rows[row].higher);
    rows[row].mapping.start = 0;
    rows[row].lower = mappings->unused;
    mappings->unused = row;
    mappings->count--;
}
