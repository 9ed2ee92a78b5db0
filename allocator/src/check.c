/* Whether blocks are what those who freed them believe: nothing is changed, only looked at. */
#include "heap_inside.h"
#include "message.h"

enum {
    TWINS_MOST = 2 * MAGAZINE_MOST, /* blocks in both magazines of a slot */
    PLACES = 512,                   /* in which they are told apart; a power of two */
    PLACE_SHIFT = 64 - 9,
};
_Static_assert(TWINS_MOST <= UINT8_MAX, "a block's number fits");

static unsigned place_of(const void *block) {
    return (unsigned)(((uint64_t)(uintptr_t)block >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> PLACE_SHIFT);
}

/* Stops the program when one of them is there twice. */
static void check_twins(unsigned class, void *const *blocks, unsigned count) {
    uint8_t last[PLACES] = {0};       /* number of the last block in each place, counted from 1, */
    uint8_t before[TWINS_MOST + 1];   /* and of the one before it there */
    for (unsigned i = 0; i < count; i++) {
        unsigned place = place_of(blocks[i]);
        for (unsigned other = last[place]; other != 0; other = before[other]) {
            if (unlikely(blocks[other - 1] == blocks[i])) {
                message_double_free(blocks[i], "size class", class_bytes[class]);
            }
        }
        before[i + 1] = last[place];
        last[place] = (uint8_t)(i + 1);
    }
}

/* The heap that the block belongs to, locked; what was locked before is not any more. */
static struct heap *move_lock(struct heap *locked, void *block, unsigned class) {
    struct heap *owner = flush_home(block, class);
    if (owner == locked && owner != NULL) {
        return locked;
    }
    if (locked != NULL) {
        lock_free(&locked->lock);
    }
    if (owner == NULL) { /* its slab has gone */
        message_double_free(block, "size class", class_bytes[class]);
    }
    lock_take(&owner->lock);
    return owner;
}

void heap_check(unsigned class, void *const *blocks, unsigned count) {
    struct slab_shape shape = slab_shape(class);
    struct heap *locked = NULL;
    check_twins(class, blocks, count);
    for (unsigned i = 0; i < count; i++) {
        locked = move_lock(locked, blocks[i], class);
        uint32_t slab = slab_shape_slab(&shape, slab_shape_slice(&shape, blocks[i]));
        size_t number = slab_number(slab, &shape, blocks[i]);
        if (unlikely((shape.spans[slab].bitmap[number / 64] >> (number % 64) & 1) != 0)) {
            slab_misuse(slab, &blocks[i], 1);
        }
    }
    if (locked != NULL) {
        lock_free(&locked->lock);
    }
}
