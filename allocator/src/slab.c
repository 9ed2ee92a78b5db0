#include "slab.h"

#include "message.h"
#include "os.h"

uint32_t slab_make(unsigned class, unsigned heap, bool dense) {
    uint32_t slices = class_slices[class];
    bool zero;
    uint32_t slab = arena_take(slices, 1, dense, &zero);
    if (slab == 0) {
        return 0;
    }
    struct span *span = arena_span(slab);
    uint32_t blocks = class_blocks(class);
    span->size_class = (uint8_t)class;
    span->heap = (uint16_t)heap;
    span->blocks = blocks;
    span->free_blocks = blocks;
    span->reciprocal = class_reciprocals[class];
    span->fresh = zero ? 0 : blocks;
    span->clean_pages = 0;
    span->examined = 0;
    span->taken = true;
    span->clean = 0;
    for (uint32_t i = 1; i < slices; i++) {
        arena_span(slab + i)->clean = 0;
        if (i + 1 < slices) { /* the arena has set, and reads, the ends */
            arena_span(slab + i)->first = slab;
        }
    }
    uint64_t *bitmap = (uint64_t *)(void *)(arena_bitmaps + slab_bitmap_offset(slab, slab_bitmap_step(class)));
    span->bitmap = bitmap;
    unsigned words = (blocks + 63) / 64;
    for (unsigned w = 0; w < words; w++) {
        bitmap[w] = bits_low(blocks - 64 * w);
    }
    span->summary = bits_low(words);
    arena_tag(slab, slices, tag_of_slab(heap, class));
    return slab;
}

void slab_unmake(uint32_t slab) { (void)arena_give(slab); }

/* -- pages --------------------------------------------------------------------------------------------------- */

/* Pages are numbered from the slab's start. Bits of `clean` are 32 a slice: enough for pages of 2 KiB. */
static bool is_clean(uint32_t slab, size_t page, size_t in_slice) {
    return (arena_span(slab + (uint32_t)(page / in_slice))->clean >> (page % in_slice) & 1) != 0;
}

static void flip_clean(uint32_t slab, size_t page, size_t in_slice) {
    arena_span(slab + (uint32_t)(page / in_slice))->clean ^= UINT32_C(1) << (page % in_slice);
}

/* The pages of taken blocks, blocks[0..count), are clean no longer. */
static OUT_OF_LINE void soil(uint32_t slab, void **blocks, unsigned count) {
    struct span *span = arena_span(slab);
    uintptr_t start = (uintptr_t)arena_address(slab);
    size_t page = os_page_bytes();
    size_t size = class_bytes[span->size_class];
    for (unsigned i = 0; i < count && span->clean_pages > 0; i++) {
        size_t offset = (uintptr_t)blocks[i] - start;
        for (size_t p = offset / page; p <= (offset + size - 1) / page; p++) {
            if (is_clean(slab, p, SLICE_BYTES / page)) {
                flip_clean(slab, p, SLICE_BYTES / page);
                span->clean_pages--;
            }
        }
    }
}

/* Purges pages [from, to) but for those that are clean; returns the bytes. */
static size_t clean_pages(uint32_t slab, size_t from, size_t to) {
    char *start = arena_address(slab);
    size_t page = os_page_bytes();
    size_t in_slice = SLICE_BYTES / page;
    size_t bytes = 0;
    while (from < to) {
        size_t end = from;
        while (end < to && !is_clean(slab, end, in_slice)) {
            end++;
        }
        if (end > from && arena_purge_pages(start + from * page, (end - from) * page)) {
            bytes += (end - from) * page;
            for (size_t p = from; p < end; p++) {
                flip_clean(slab, p, in_slice);
            }
            arena_span(slab)->clean_pages = (uint16_t)(arena_span(slab)->clean_pages + (end - from));
        }
        from = end + 1; /* what stopped the run is clean, or the end */
    }
    return bytes;
}

/* The number of the first block from `number` on whose bit equals `set`, or the number of blocks. */
static size_t next_block(const uint64_t *bitmap, size_t number, size_t blocks, bool set) {
    while (number < blocks) {
        uint64_t word = (set ? bitmap[number / 64] : ~bitmap[number / 64]) & ~bits_low(number % 64);
        if (word != 0) {
            return bits_min((number & ~(size_t)63) + bits_lowest(word), blocks);
        }
        number = (number & ~(size_t)63) + 64;
    }
    return blocks;
}

size_t slab_clean(uint32_t slab, bool *busy) {
    struct span *span = arena_span(slab);
    size_t page = os_page_bytes();
    size_t size = class_bytes[span->size_class];
    *busy = span->taken && span->free_blocks > 0;
    span->taken = false;
    span->examined = *busy ? 0 : span->examined;
    if (*busy || span->free_blocks == span->examined || page > SLICE_BYTES) {
        return 0;
    }
    span->examined = span->free_blocks;
    const uint64_t *bitmap = span->bitmap;
    size_t bytes = 0;
    for (size_t from = 0; (from = next_block(bitmap, from, span->blocks, true)) < span->blocks;) {
        size_t to = next_block(bitmap, from, span->blocks, false);
        /* What is left over behind the last block is free with it. */
        size_t end = to == span->blocks ? (size_t)span->slices << SLICE_BITS : to * size;
        bytes += clean_pages(slab, (from * size + page - 1) / page, end / page);
        from = to;
    }
    return bytes;
}

/* -- blocks -------------------------------------------------------------------------------------------------- */

unsigned slab_take(uint32_t slab, void **blocks, unsigned want) {
    struct span *span = arena_span(slab);
    uint64_t *bitmap = span->bitmap;
    char *base = arena_address(slab);
    size_t size = class_bytes[span->size_class];
    unsigned taken = 0;
    while (span->summary != 0 && taken < want) {
        unsigned w = bits_lowest(span->summary);
        uint64_t word = bitmap[w];
        char *row = base + (size_t)w * 64 * size;
        while (word != 0 && taken < want) { /* a run of neighbours at a time */
            unsigned bit = bits_lowest(word);
            uint64_t rest = ~(word >> bit);
            unsigned run = rest == 0 ? 64 : bits_lowest(rest);
            run = run < want - taken ? run : want - taken;
            char *block = row + bit * size;
            for (void **end = blocks - run; blocks != end; block += size) {
                *--blocks = block;
                __builtin_prefetch(block, 1, 2); /* to the second level: some of these come out only much later */
            }
            taken += run;
            word &= ~(bits_low(run) << bit);
        }
        bitmap[w] = word;
        if (word == 0) {
            span->summary &= span->summary - 1;
        }
    }
    if (taken == 0) {
        return 0;
    }
    span->free_blocks -= taken;
    span->taken = true;
    if (size >= CLASS_FRESH) { /* the last one taken is the highest */
        uint32_t behind = (uint32_t)(((uintptr_t)*blocks - (uintptr_t)base) * span->reciprocal >> 32) + 1;
        span->fresh = (uint32_t)bits_max(span->fresh, behind);
    }
    if (unlikely(span->clean_pages > 0)) {
        soil(slab, blocks, taken);
    }
    return taken;
}

/* The length of the run at[0], at[-1], ... in which each address is `step` more than the one before, at most `most`. */
static inline unsigned run_length(void **at, size_t step, unsigned most) {
    unsigned length = 1;
    while (length < most && (uintptr_t)at[-(ptrdiff_t)length] - (uintptr_t)at[1 - (ptrdiff_t)length] == step) {
        length++;
    }
    return length;
}

unsigned slab_give_run(uint32_t slab, void **at) {
    struct span *span = arena_span(slab);
    struct slab_shape shape = {.base = window.base,
                               .size = class_bytes[span->size_class],
                               .reciprocal = span->reciprocal,
                               .slices = span->slices,
                               .blocks = span->blocks};
    size_t number = slab_number(slab, &shape, *at);
    uint64_t *word = span->bitmap + number / 64;
    unsigned bit = number % 64;
    /* A run ends with the bitmap's word and with the slab: the next slab's first block may follow on its last. */
    unsigned up = run_length(at, shape.size, (unsigned)bits_min(64 - bit, shape.blocks - number));
    unsigned down = up > 1 ? 1 : run_length(at, -shape.size, bit + 1);
    unsigned given = up + down - 1;
    uint64_t mask = bits_low(given) << (bit + 1 - down);
    if (unlikely((*word & mask) != 0)) {
        slab_misuse(slab, at, given);
    }
    *word |= mask;
    span->summary |= UINT64_C(1) << (number / 64);
    span->free_blocks += given;
    return given;
}

OUT_OF_LINE _Noreturn void slab_misuse(uint32_t slab, void *const *at, unsigned count) {
    const struct span *span = arena_span(slab);
    size_t size = class_bytes[span->size_class];
    const uint64_t *bitmap = span->bitmap;
    for (; count > 1; at--, count--) { /* the last is at fault when no other is */
        size_t offset = (uintptr_t)*at - (uintptr_t)arena_address(slab);
        size_t number = offset / size;
        if (offset % size != 0 || number >= span->blocks || (bitmap[number / 64] >> (number % 64) & 1) != 0) {
            break;
        }
    }
    size_t offset = (uintptr_t)*at - (uintptr_t)arena_address(slab);
    if (offset % size != 0 || offset / size >= span->blocks) {
        message_interior_pointer(*at, "size class", size);
    }
    message_double_free(*at, "size class", size);
}
