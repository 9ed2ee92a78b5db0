/* Freed slots of the hardened heap that nobody takes yet. */
#include "hard_inside.h"
#include "options.h"
#include "street.h"

enum {
    HELD_MOST = 128, /* in the row, and in the ring */
    HELD_LEAST = 32, /* in the ring: so many frees at least before a slot is taken again, however large */
};

void hard_held_open(struct hard_held *held, unsigned class) {
    size_t bytes = (size_t)option_value(OPTION_QUARANTINE_KIB) * 1024;
    *held = (struct hard_held){0};
    if (bytes == 0 || class == HARD_NOTHING) {
        return;
    }
    uint32_t row = (uint32_t)bits_min(bits_max(bytes / hard_slot_bytes(class), 1), HELD_MOST);
    uint32_t ring = (uint32_t)bits_max(row, HELD_LEAST);
    (void)street_bookkeeping_grow();
    held->places = street_bookkeeping(((size_t)row + ring) * sizeof *held->places);
    held->row = held->places != NULL ? row : 0;
    held->ring = held->places != NULL ? ring : 0;
}

void *hard_held_swap(struct hard_held *held, void *block, uint64_t *chance) {
    if (unlikely(held->row == 0)) {
        return block;
    }
    void **place = &held->places[random_below(chance, held->row)];
    void *before = *place;
    *place = block;
    if (before == NULL) {
        return NULL;
    }
    place = &held->places[held->row + held->next];
    held->next = held->next + 1 == held->ring ? 0 : held->next + 1;
    block = *place;
    *place = before;
    return block;
}

void *hard_held_pop(struct hard_held *held) {
    for (uint32_t i = 0; i < held->row + held->ring; i++) {
        void *block = held->places[i];
        if (block != NULL) {
            held->places[i] = NULL;
            return block;
        }
    }
    return NULL;
}
