/* The magazines of a heap: full ones in depots, empty ones to spare. Under the heap's lock. */
#include "heap_inside.h"
#include "magazine_pool.h"

enum {
    DEPOT_CLASS_BYTES = 1024 * 1024, /* blocks a class may keep in its depot */
    DEPOT_HEAP_BYTES = 1024 * 1024,  /* ... and all classes of a heap, plus a share of its slabs: */
    DEPOT_HEAP_SHARE = 2,
    SPARE_LEAST = 12, /* spare magazines of a heap that stay with it, needed or not */
    LOOK_FIRST = 16,
    LOOK_EVERY = 256,
};

void depot_keep_spare(struct heap *heap, union magazine *magazine) {
    magazine->next = heap->spare;
    heap->spare = magazine;
    heap->spare_count++;
}

/* None is spare: some of the pool's. */
static OUT_OF_LINE bool fetch_spare(struct heap *heap) {
    union magazine *magazine = magazine_pool_take();
    while (magazine != NULL) {
        union magazine *next = magazine->next;
        depot_keep_spare(heap, magazine);
        magazine = next;
    }
    return heap->spare != NULL;
}

union magazine *depot_take_spare(struct heap *heap) {
    if (unlikely(heap->spare == NULL) && !fetch_spare(heap)) {
        return NULL;
    }
    union magazine *magazine = heap->spare;
    heap->spare = magazine->next;
    heap->spare_count--;
    if (unlikely(heap->spare_count < heap->spare_low)) { /* seldom: on a line that all threads read */
        heap->spare_low = heap->spare_count;
    }
    return magazine;
}

union magazine *depot_give_up_spare(struct heap *heap, uint32_t most) {
    uint32_t count = (uint32_t)bits_min(most, heap->spare_due);
    count = (uint32_t)bits_min(count, heap->spare_count);
    heap->spare_due -= (uint32_t)bits_min(most, heap->spare_due);
    union magazine *list = NULL;
    for (; count > 0; count--) {
        union magazine *magazine = depot_take_spare(heap);
        magazine->next = list;
        list = magazine;
    }
    return list;
}

bool depot_mark_spare(struct heap *heap, bool all) {
    uint32_t unneeded = all ? heap->spare_count : heap->spare_low;
    heap->spare_due = unneeded > SPARE_LEAST ? unneeded - SPARE_LEAST : 0;
    heap->spare_low = heap->spare_count - heap->spare_due;
    return heap->spare_low > SPARE_LEAST;
}

/* Of the magazines of a class that come to a heap's depot the first are looked at, and one in so many later: a look takes longer than the exchange. */
static bool is_looked_at(uint32_t number) { return number < LOOK_FIRST || number % LOOK_EVERY == 0; }

static void push(struct heap *heap, unsigned class, union magazine *full) {
    struct shelf *shelf = &heap->shelf[class];
    if (unlikely(is_looked_at(shelf->depot_brought++))) {
        check_magazine(class, magazine_full_top(full));
    }
    unsigned blocks = magazine_capacity(full);
    full->next = shelf->depot;
    shelf->depot = full;
    shelf->depot_count++;
    shelf->depot_blocks += blocks;
    heap->depot_bytes += (size_t)blocks * class_bytes[class];
}

union magazine *depot_pop(struct heap *heap, unsigned class) {
    struct shelf *shelf = &heap->shelf[class];
    union magazine *full = shelf->depot;
    if (full == NULL) {
        return NULL;
    }
    unsigned blocks = magazine_capacity(full);
    shelf->depot = full->next;
    shelf->depot_count--;
    shelf->depot_low = (uint32_t)bits_min(shelf->depot_low, shelf->depot_count);
    shelf->depot_blocks -= blocks;
    heap->depot_bytes -= (size_t)blocks * class_bytes[class];
    return full;
}

static bool has_room(const struct heap *heap, unsigned class, unsigned blocks) {
    size_t bytes = (size_t)blocks * class_bytes[class];
    return heap->shelf[class].depot_blocks * class_bytes[class] + bytes <= DEPOT_CLASS_BYTES &&
           heap->depot_bytes + bytes <= DEPOT_HEAP_BYTES + heap->slab_bytes / DEPOT_HEAP_SHARE;
}

union magazine *depot_keep(struct heap *heap, unsigned class, union magazine *full, unsigned capacity) {
    unsigned blocks = magazine_capacity(full);
    bool few = blocks + full->folded < capacity / 2; /* not worth a magazine */
    bool keep = !few && has_room(heap, class, blocks);
    union magazine *spare = keep ? depot_take_spare(heap) : NULL;
    if (spare != NULL) {
        push(heap, class, full);
    }
    return spare;
}

/* -- draining ------------------------------------------------------------------------------------------------ */

/* So many of the class's magazines are due. */
static void mark(struct heap *heap, unsigned class, uint32_t magazines) {
    struct shelf *shelf = &heap->shelf[class];
    shelf->depot_low = shelf->depot_count;
    shelf->depot_due = (uint32_t)bits_max(shelf->depot_due, magazines);
    if (shelf->depot_due > 0) {
        heap->due_classes |= UINT64_C(1) << class;
    }
}

void depot_mark_unneeded(struct heap *heap) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        mark(heap, class, heap->shelf[class].depot_low);
    }
}

void depot_mark_all(struct heap *heap) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        mark(heap, class, heap->shelf[class].depot_count);
    }
}

static void drain_one(struct heap *heap, unsigned class) {
    union magazine *full = depot_pop(heap, class);
    if (full == NULL) { /* somebody needed it after all */
        heap->shelf[class].depot_due = 0;
    } else if (flush_blocks(heap, class, magazine_full_top(full))) {
        depot_keep_spare(heap, full);
    } else {
        full->size_class = class;
        full->next = heap->strays;
        heap->strays = full;
    }
}

bool depot_drain(struct heap *heap, unsigned magazines) {
    while (heap->due_classes != 0 && magazines > 0) {
        unsigned class = bits_lowest(heap->due_classes);
        struct shelf *shelf = &heap->shelf[class];
        if (shelf->depot_due > 0) {
            shelf->depot_due--;
            drain_one(heap, class);
            magazines--;
        }
        if (shelf->depot_due == 0) {
            heap->due_classes &= heap->due_classes - 1;
        }
    }
    return heap->due_classes != 0;
}
