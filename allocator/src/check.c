/* Whether blocks are what those who freed them believe: nothing is changed, only looked at. */
#include <string.h>

#include "heap_inside.h"
#include "message.h"

enum {
    PLACES_MOST = 512, /* in which blocks are told apart; a power of two, as are fewer */
    PLACES_LEAST = 32,
};
_Static_assert(2 * (int)MAGAZINE_MOST <= (int)UINT8_MAX, "a block's number fits");

/* Places for so many blocks: at least twice as many. */
static unsigned places_for(unsigned count) {
    unsigned places = PLACES_LEAST;
    while (places < 2 * count && places < PLACES_MOST) {
        places *= 2;
    }
    return places;
}

/* Stops the program when one of them is there twice. */
static void check_twins(unsigned class, void *const *blocks, unsigned count) {
    uint8_t last[PLACES_MOST];             /* number of the last block in each place, counted from 1, */
    uint8_t before[2 * MAGAZINE_MOST + 1]; /* and of the one before it there */
    unsigned places = places_for(count);
    for (unsigned place = 0; place < places; place += 8) {
        memset(&last[place], 0, 8);
    }
    uint64_t scale = UINT64_C(0x9E3779B97F4A7C15);
    unsigned shift = 64 - bits_lowest(places);
    for (unsigned i = 0; i < count; i++) {
        unsigned place = (unsigned)(((uintptr_t)blocks[i] >> 4) * scale >> shift);
        unsigned other = last[place];
        before[i + 1] = (uint8_t)other;
        last[place] = (uint8_t)(i + 1);
        for (; unlikely(other != 0); other = before[other]) {
            if (unlikely(blocks[other - 1] == blocks[i])) {
                message_double_free(blocks[i], "size class", class_bytes[class]);
            }
        }
    }
}

void check_magazine(unsigned class, void **top) {
    struct slab_shape shape = slab_shape(class);
    const union magazine *magazine = magazine_of(top);
    void *const *blocks = &magazine->word[magazine->bottom + 1];
    unsigned count = magazine_count(top);
    for (unsigned i = 0; i < count; i++) {
        if (unlikely(slab_lends(blocks[i]))) { /* what is wrong shows when it comes to the bitmap */
            continue;
        }
        (void)slab_number(slab_shape_slab(&shape, slab_shape_slice(&shape, blocks[i])), &shape, blocks[i]);
    }
    check_twins(class, blocks, count);
}

/* The heap that the block belongs to, locked, or NULL where it is held for too long; what was locked before is not any more. */
static OUT_OF_LINE struct heap *move_lock(struct heap *locked, void *block, unsigned class, struct patience *patience) {
    struct heap *owner = flush_home(block, class);
    if (locked != NULL) {
        lock_free(&locked->lock);
    }
    if (owner == NULL) { /* its slab has gone */
        message_double_free(block, "size class", class_bytes[class]);
    }
    return lock_take_within(&owner->lock, patience) ? owner : NULL;
}

void heap_check(unsigned class, void *const *blocks, unsigned count, struct patience *patience) {
    struct slab_shape shape = slab_shape(class);
    const uint32_t *tags = (const uint32_t *)shape.base;
    struct heap *locked = NULL;
    uint32_t expected = TAG_NONE;
    if (count > 1) {
        check_twins(class, blocks, count);
    }
    for (unsigned i = 0; i < count; i++) {
        if (unlikely(slab_lends(blocks[i]))) { /* what is wrong shows when it comes to the bitmap */
            continue;
        }
        uint32_t slice = slab_shape_slice(&shape, blocks[i]);
        /* relaxed: no other thread changes the tag of a slab of this heap, whose lock is held; for any other tag it is asked again */
        if (unlikely(__atomic_load_n(&tags[slice], __ATOMIC_RELAXED) != expected || expected == TAG_NONE)) {
            locked = move_lock(locked, blocks[i], class, patience);
            if (locked == NULL) {
                expected = TAG_NONE;
                continue;
            }
            expected = tag_of_slab(locked->number, class);
        }
        uint32_t slab = slab_shape_slab(&shape, slice);
        size_t number = slab_number(slab, &shape, blocks[i]);
        if (unlikely((shape.spans[slab].bitmap[number / 64] >> (number % 64) & 1) != 0)) {
            slab_misuse(slab, &blocks[i], 1);
        }
    }
    if (locked != NULL) {
        lock_free(&locked->lock);
    }
}
