/* Holes in slabs of smaller classes, lent to a larger one. Pages that a few blocks in use pin cannot be returned to the kernel, and a block of
 * another class cannot use what is free on them: without this a program whose sizes change holds those of each size.
 *
 * A run of free blocks becomes one block of the larger class, and is one in magazines and depots. The slab's tag tells no slot while it lends, so
 * that free() leaves its blocks to the slow path, which asks of what class each is. Once it comes to the bitmap, all of the run is free.
 *
 * Blocks are lent only while the free bytes in slabs exceed their budget by far. A class that has been lent as many
 * bytes as LENT_SLABS slabs takes a slab of its own, so that churn finds its blocks in magazines soon. */
#include "heap_inside.h"

enum {
    LENT_SLABS = 16,
    LEAST = 1, /* the smallest class that lends: of 16 bytes the bitmap fills its room */
    BLOCKS_MOST = 128, /* in a run */
    SLABS_LOOKED_AT = 64, /* in one call, */
    RUNS_LOOKED_AT = 512, /* and free runs in them */
};

void lend_begin(struct heap *heap, unsigned class) {
    if (unlikely(budget_is_missed())) {
        heap->lenders[class].left = LENT_SLABS * (uint32_t)class_slices[class] << SLICE_BITS;
        heap->lending |= UINT64_C(1) << class;
    }
}

/* Blocks of class `of` that hold one of `class`; 0 if they hold one of the next class too, or are too many. */
static uint32_t blocks_for(unsigned class, unsigned of) {
    uint32_t size = class_bytes[class], blocks = (size + class_bytes[of] - 1) / class_bytes[of];
    bool fits = class + 1 < CLASS_COUNT && blocks * class_bytes[of] < class_bytes[class + 1];
    return blocks <= BLOCKS_MOST && fits ? blocks : 0;
}

/* The next smaller class that can lend, and has free blocks; 0 for none. */
static unsigned next_class(const struct heap *heap, unsigned class, unsigned from) {
    while (from > LEAST) {
        from--;
        if (heap->shelf[from].slabs != 0 && blocks_for(class, from) != 0) {
            return from;
        }
    }
    return 0;
}

/* What is left of one call's looks. */
struct looks {
    unsigned slabs, runs;
};

/* Moves on to a slab with a run for the class. False if none is found within the looks; the next call goes on there. */
static bool find(struct heap *heap, unsigned class, struct lender *lender, struct looks *looks) {
    if (!shelf_lists(heap, lender->class, lender->slab)) {
        lender->slab = 0;
    }
    for (; looks->slabs > 0 && looks->runs > 0; looks->slabs--) {
        if (lender->slab == 0) {
            lender->class = (uint8_t)next_class(heap, class, lender->class == 0 ? class : lender->class);
            if (lender->class == 0) {
                return false;
            }
            lender->slab = heap->shelf[lender->class].slabs;
            lender->number = 0;
        }
        uint32_t number = lender->number;
        bool found = slab_find_run(lender->slab, blocks_for(class, lender->class), &number, &looks->runs);
        lender->number = (uint16_t)number;
        if (found) {
            return true;
        }
        if (looks->runs > 0) {
            lender->slab = arena_span(lender->slab)->next;
            lender->number = 0;
        }
    }
    return false;
}

/* Lends one block, where lender->number says. */
static void *lend(struct heap *heap, struct lender *lender, uint32_t blocks) {
    struct shelf *shelf = &heap->shelf[lender->class];
    shelf->lent += blocks;
    void *block = slab_lend(lender->slab, lender->number, blocks);
    lender->number = (uint16_t)(lender->number + blocks);
    heap->free_blocks -= blocks;
    heap->free_bytes -= (size_t)blocks * class_bytes[lender->class];
    if (arena_span(lender->slab)->free_blocks == 0) {
        uint32_t next = arena_span(lender->slab)->next;
        shelf_unlist(shelf, lender->slab);
        lender->slab = next;
        lender->number = 0;
    }
    return block;
}

unsigned lend_take(struct heap *heap, unsigned class, void **end, unsigned want) {
    if (likely((heap->lending >> class & 1) == 0)) {
        return 0;
    }
    struct lender *lender = &heap->lenders[class];
    struct looks looks = {SLABS_LOOKED_AT, RUNS_LOOKED_AT};
    unsigned taken = 0;
    while (taken < want && lender->left >= class_bytes[class] && find(heap, class, lender, &looks)) {
        *--end = lend(heap, lender, blocks_for(class, lender->class));
        lender->left -= class_bytes[class];
        heap->shelf[class].borrowed++;
        taken++;
    }
    if (taken < want) {
        heap->lending &= ~(UINT64_C(1) << class);
    }
    return taken;
}
