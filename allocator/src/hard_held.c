/* Freed slots of the hardened heap that nobody takes yet. */
#include "hard_inside.h"
#include "options.h"
#include "street.h"

enum { HELD_MOST = 128 }; /* in the row, and in the ring */

void hard_held_open(struct hard_held *held, unsigned class) {
    size_t bytes = (size_t)option_value(OPTION_QUARANTINE_KIB) * 1024;
    *held = (struct hard_held){0};
    if (bytes == 0 || class == HARD_NOTHING) {
        return;
    }
    uint32_t count = (uint32_t)bits_min(bits_max(bytes / hard_slot_bytes(class), 1), HELD_MOST);
    (void)street_bookkeeping_grow();
    held->places = street_bookkeeping(2 * (size_t)count * sizeof *held->places);
    held->count = held->places != NULL ? count : 0;
}

void *hard_held_swap(struct hard_held *held, void *block, uint64_t *chance) {
    if (unlikely(held->count == 0)) {
        return block;
    }
    void **place = &held->places[random_below(chance, held->count)];
    void *before = *place;
    *place = block;
    if (before == NULL) {
        return NULL;
    }
    place = &held->places[held->count + held->next];
    held->next = held->next + 1 == held->count ? 0 : held->next + 1;
    block = *place;
    *place = before;
    return block;
}

void *hard_held_pop(struct hard_held *held) {
    for (uint32_t i = 0; i < 2 * held->count; i++) {
        void *block = held->places[i];
        if (block != NULL) {
            held->places[i] = NULL;
            return block;
        }
    }
    return NULL;
}
