/* The size classes: every table derived again from its rule, every size and every offset tried. */
#include "size_class.h"
#include "tag.h"

#include "expect.h"

static void check_sizes(void) {
    unsigned class = 0;
    uint32_t size = 0;
    while (size < 128) {
        size += 16;
        EXPECT(class < CLASS_COUNT && class_bytes[class] == size, "class %u is not %u bytes", class, size);
        class++;
    }
    for (uint32_t doubling = 128; doubling < CLASS_LARGEST; doubling *= 2) {
        for (unsigned quarter = 1; quarter <= 4; quarter++) {
            if (doubling == 4096 && quarter == 1) {
                EXPECT(class_bytes[class] == CLASS_PAGE, "class %u is not that of pages with a header", class);
                class++;
            }
            size = doubling + doubling / 4 * quarter;
            EXPECT(class < CLASS_COUNT && class_bytes[class] == size, "class %u is not %u bytes", class, size);
            class++;
        }
    }
    EXPECT(class == CLASS_COUNT && size == CLASS_LARGEST, "%u classes to %u bytes", class, size);
}

/* Every size has the smallest class that holds it; so classes rise with sizes. */
static void check_class_of(void) {
    unsigned wanted = 0;
    for (size_t size = 1; size <= CLASS_LARGEST; size++) {
        while (class_bytes[wanted] < size) {
            wanted++;
        }
        EXPECT(class_of(size) == wanted, "%zu bytes: class %u instead of %u", size, class_of(size), wanted);
    }
}

/* The rounding the header claims: worst and mean. */
static void check_waste(void) {
    double sum = 0;
    for (size_t size = 1; size <= CLASS_LARGEST; size++) {
        double bytes = class_bytes[class_of(size)];
        double waste = (bytes - (double)size) / (double)size;
        EXPECT(size <= 128 || waste < 0.25, "%zu bytes get %.0f", size, bytes);
        sum += (bytes - (double)size) / bytes;
    }
    EXPECT(sum / CLASS_LARGEST < 0.08, "on average %.3f of a block is unused", sum / CLASS_LARGEST);
}

static uint32_t blocks_least(unsigned class) {
    uint32_t bytes = class_bytes[class];
    return bytes <= 8192 ? 32 : bytes <= 16384 ? 16 : bytes <= 65536 ? 8 : 4;
}

static void check_slices(void) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        uint32_t slices = 0;
        uint32_t blocks, waste;
        do {
            slices++;
            blocks = slices * SLICE_BYTES / class_bytes[class];
            waste = slices * SLICE_BYTES - blocks * class_bytes[class];
        } while (blocks < blocks_least(class) || waste * 16 > slices * SLICE_BYTES);
        EXPECT(class_slices[class] == slices, "class %u: %u slices instead of %u", class, class_slices[class], slices);
        EXPECT(class_blocks(class) == blocks, "class %u: %u blocks instead of %u", class, class_blocks(class), blocks);
        EXPECT(blocks >= 4 && blocks <= 4096, "class %u: %u blocks, the summary has 64 words of 64", class, blocks);
    }
}

/* Of every byte of every slab: the product names a block, and that block starts there exactly when the offset is a
 * multiple of the size; in slabs of one slice the product's low half tells the same. */
static void check_reciprocals(void) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        uint64_t size = class_bytes[class];
        uint64_t reciprocal = class_reciprocals[class];
        EXPECT(reciprocal <= UINT32_MAX, "class %u: %#llx does not fit a slab's descriptor", class,
               (unsigned long long)reciprocal);
        uint64_t number = 0, within = 0;
        for (uint64_t offset = 0; offset < (uint64_t)class_slices[class] * SLICE_BYTES; offset++) {
            uint64_t named = offset * reciprocal >> 32;
            if (within == 0) {
                EXPECT(named == number, "class %u, offset %llu: block %llu instead of %llu", class,
                       (unsigned long long)offset, (unsigned long long)named, (unsigned long long)number);
            } else {
                EXPECT(named * size != offset, "class %u, offset %llu passes for a block's start", class,
                       (unsigned long long)offset);
            }
            EXPECT(class_slices[class] > 1 || ((uint32_t)(offset * reciprocal) < reciprocal) == (within == 0),
                   "class %u, offset %llu: the low half says otherwise", class, (unsigned long long)offset);
            if (++within == size) {
                within = 0;
                number++;
            }
        }
    }
}

/* An aligned block comes from the first class from its size on whose blocks are multiples of the alignment. */
static void check_aligned_classes(void) {
    for (size_t alignment = 1; alignment <= SLICE_BYTES; alignment *= 2) {
        for (size_t size = 1; size <= CLASS_LARGEST; size += size < 4096 ? 1 : 509) {
            unsigned class = class_of(size > alignment ? size : alignment);
            unsigned steps = 0;
            while (class < CLASS_COUNT && class_bytes[class] % alignment != 0) {
                class++;
                steps++;
            }
            unsigned most = size > 4096 && size <= CLASS_PAGE ? 4 : 3;
            EXPECT(class < CLASS_COUNT && steps <= most, "%zu bytes at %zu: no class within %u steps", size, alignment,
                   steps);
        }
    }
}

/* Classes whose blocks share lines have a slot for each of eight heaps, the others one for all; slot 0 is nobody's. */
static void check_slots(void) {
    unsigned owner[SLOT_COUNT] = {0};
    EXPECT(slot_bytes[0] == 0, "slot 0 has blocks of %u", slot_bytes[0]);
    for (unsigned heap = 0; heap < 2 * LINE_HEAPS; heap++) {
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            unsigned slot = slot_of(heap, class);
            EXPECT(slot > 0 && slot < SLOT_COUNT, "class %u of heap %u: slot %u", class, heap, slot);
            EXPECT(slot_class(slot) == class && slot_bytes[slot] == class_bytes[class], "slot %u: class %u of %u bytes",
                   slot, slot_class(slot), slot_bytes[slot]);
            EXPECT((slot == slot_of(heap + 1, class)) == (class_bytes[class] >= 64), "class %u: slot %u", class, slot);
            EXPECT(slot == slot_of(heap + LINE_HEAPS, class), "class %u: slot %u", class, slot);
            unsigned whose = 1 + class * LINE_HEAPS + (class_bytes[class] >= 64 ? 0 : heap % LINE_HEAPS);
            EXPECT(owner[slot] == 0 || owner[slot] == whose, "slot %u is shared", slot);
            owner[slot] = whose;
            uint32_t tag = tag_of_slab(heap, class);
            EXPECT(tag_is_slab(tag) && tag_class(tag) == class && tag_heap(tag) == heap, "tag %#x", tag);
        }
    }
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        EXPECT(owner[slot] != 0, "slot %u is nobody's", slot);
    }
    EXPECT(!tag_is_slab(TAG_NONE) && !tag_is_slab(TAG_LARGE) && !tag_is_slab(TAG_INSIDE), "a tag passes for a slab's");
}

int main(void) {
    check_sizes();
    check_class_of();
    check_waste();
    check_slices();
    check_reciprocals();
    check_aligned_classes();
    check_slots();
    return 0;
}
