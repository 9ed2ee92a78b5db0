#include "slab.h"

#include "message.h"

uint32_t slab_make(unsigned class, unsigned heap) {
    uint32_t slices = class_slices[class];
    bool zero;
    uint32_t slab = arena_take(slices, 1, &zero);
    if (slab == 0) {
        return 0;
    }
    struct span *span = arena_span(slab);
    uint32_t blocks = class_blocks(class);
    span->size_class = (uint8_t)class;
    span->heap = (uint16_t)heap;
    span->blocks = blocks;
    span->free_blocks = blocks;
    span->reciprocal = (uint32_t)class_reciprocal(class);
    for (uint32_t i = 1; i + 1 < slices; i++) { /* the arena has set, and reads, the ends */
        arena_span(slab + i)->first = slab;
    }
    uint64_t *bitmap = arena_bitmap(slab);
    unsigned words = (blocks + 63) / 64;
    for (unsigned w = 0; w < words; w++) {
        bitmap[w] = bits_low(blocks - 64 * w);
    }
    span->summary = bits_low(words);
    arena_tag(slab, slices, ((uint32_t)heap + 1) << TAG_HEAP_SHIFT | (uint32_t)class);
    return slab;
}

void slab_unmake(uint32_t slab) { (void)arena_give(slab); }

unsigned slab_take(uint32_t slab, void **blocks, unsigned want) {
    struct span *span = arena_span(slab);
    uint64_t *bitmap = arena_bitmap(slab);
    char *base = arena_address(slab);
    size_t size = class_bytes[span->size_class];
    unsigned taken = 0;
    while (span->summary != 0 && taken < want) {
        unsigned w = bits_lowest(span->summary);
        uint64_t word = bitmap[w];
        char *row = base + (size_t)w * 64 * size;
        while (word != 0 && taken < want) {
            taken++;
            *--blocks = row + bits_lowest(word) * size;
            word &= word - 1;
        }
        bitmap[w] = word;
        if (word == 0) {
            span->summary &= span->summary - 1;
        }
    }
    span->free_blocks -= taken;
    return taken;
}

unsigned slab_give(uint32_t slab, void **top) {
    struct span *span = arena_span(slab);
    uint64_t *bitmap = arena_bitmap(slab);
    uintptr_t start = (uintptr_t)arena_address(slab);
    size_t bytes = (size_t)span->slices << SLICE_BITS;
    size_t size = class_bytes[span->size_class];
    uint64_t reciprocal = span->reciprocal;
    uint64_t summary = span->summary;
    unsigned given = 0;
    for (; *top != NULL; top--, given++) {
        size_t offset = (uintptr_t)*top - start;
        if (offset >= bytes) {
            break; /* the next is another slab's */
        }
        size_t number = offset * reciprocal >> 32;
        if (unlikely(number * size != offset || number >= span->blocks)) {
            message_interior_pointer(*top, "size class", size);
        }
        uint64_t *word = &bitmap[number / 64];
        uint64_t bit = UINT64_C(1) << (number % 64);
        if (unlikely((*word & bit) != 0)) {
            message_double_free(*top, "size class", size);
        }
        *word |= bit;
        summary |= UINT64_C(1) << (number / 64);
    }
    span->summary = summary;
    span->free_blocks += given;
    return given;
}
