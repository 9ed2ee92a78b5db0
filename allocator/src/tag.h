/* Tags: four bytes a slice that say whose the slice is. Leaf: what free() reads, owned by the
 * arena.
 *
 * The tags lie at the very start of the street (street.h), so its base is also the array of
 * tags. */
#ifndef FREESTONE_TAG_H
#define FREESTONE_TAG_H

#include "size_class.h"

/* What every free() needs, on one cache line. extent is the end of what has ever been handed out:
 * addresses from there on are foreign, also those between extent and the street's end, whose tags
 * may not be readable. */
struct window {
    uintptr_t base;
    size_t extent; /* grows only; written under the arena's lock, read without: see tag_of */
};
extern struct window window INTERNAL;

/* Slots: the places for magazines in a thread's cache. A class has one slot for the blocks of all heaps, so that a block that
 * another heap's thread has taken is handed out again where it was freed. Classes whose blocks share cache lines have one for
 * each heap (or group of heaps, where they are many): handed out elsewhere, such a block would make two CPUs write one
 * line; it goes home instead. Slot 0 is nobody's. */
enum {
    LINE_CLASSES = 3, /* of 16, 32 and 48 bytes */
    LINE_HEAPS = 8,
    LINE_SLOTS = 1 + CLASS_COUNT - LINE_CLASSES, /* the first of theirs */
    SLOT_COUNT = LINE_SLOTS + LINE_CLASSES * LINE_HEAPS,
};

/* Bytes in a block of each slot's class. */
#define THREE 16, 32, 48
static const uint32_t slot_bytes[SLOT_COUNT] = {
    0,      64,     80,     96,     112,    128,    160,   192,   224,   256,   320,   384,   448,   512,   640,
    768,    896,    1024,   1280,   1536,   1792,   2048,  2560,  3072,  3584,  4096,  4608,  5120,  6144,  7168,
    8192,   10240,  12288,  14336,  16384,  20480,  24576, 28672, 32768, 40960, 49152, 57344, 65536, 81920, 98304,
    114688, 131072, 163840, 196608, 229376, 262144, THREE, THREE, THREE, THREE, THREE, THREE, THREE, THREE,
};
#undef THREE

static inline unsigned slot_of(unsigned heap, unsigned class) {
    return class >= LINE_CLASSES ? 1 + class - LINE_CLASSES : LINE_SLOTS + heap % LINE_HEAPS * LINE_CLASSES + class;
}

static inline unsigned slot_class(unsigned slot) { /* not of slot 0 */
    return slot < LINE_SLOTS ? slot - 1 + LINE_CLASSES : (slot - LINE_SLOTS) % LINE_CLASSES;
}

/* Tags. A slab's is (heap + 1) << TAG_HEAP_SHIFT | slot << TAG_SLOT_SHIFT; every other tag is of slot 0. The lower half is so the place of
 * the slot's magazines in a thread's cache, in bytes. A slab that lends has blocks of several classes: slot 0, and TAG_LENDS. */
enum {
    TAG_SLOT_SHIFT = 5,
    TAG_HEAP_SHIFT = 16,
    TAG_HEAPS_MOST = (1 << 15) - 5,
};
static const uint32_t TAG_LENDS = UINT32_C(1) << 31; /* set in the tag of a slab that lends: lend.c */
static const uint32_t TAG_NONE = 0;                      /* bookkeeping, free, or never used */
static const uint32_t TAG_LARGE = UINT32_C(0xFFFF0000);  /* first slice of a large span */
static const uint32_t TAG_INSIDE = UINT32_C(0xFFFE0000); /* a further slice of a large span */
static const uint32_t TAG_HARD = UINT32_C(0xFFFD0000);       /* a slice of a slab of the hardened heap */
static const uint32_t TAG_HARD_LARGE = UINT32_C(0xFFFC0000); /* a slice of a large span of its */
_Static_assert((int)SLOT_COUNT << (int)TAG_SLOT_SHIFT <= 1 << (int)TAG_HEAP_SHIFT,
               "a slot fits into a tag's lower half");

static inline uint32_t tag_of_slab(unsigned heap, unsigned class) {
    return (uint32_t)(heap + 1) << TAG_HEAP_SHIFT | slot_of(heap, class) << TAG_SLOT_SHIFT;
}
static inline uint32_t tag_of_lender(unsigned heap) { return TAG_LENDS | (uint32_t)(heap + 1) << TAG_HEAP_SHIFT; }
static inline bool tag_lends(uint32_t tag) { return tag >= TAG_LENDS && tag < TAG_HARD_LARGE; }
static inline bool tag_is_slab(uint32_t tag) { return (tag & UINT16_MAX) != 0 || tag_lends(tag); }
static inline unsigned tag_slot(uint32_t tag) { return (tag & UINT16_MAX) >> TAG_SLOT_SHIFT; } /* 0 of one that lends */
static inline unsigned tag_class(uint32_t tag) {
    return slot_class(tag_slot(tag));
} /* of a slab's that does not lend */
static inline unsigned tag_heap(uint32_t tag) { /* of a slab's */ return ((tag & ~TAG_LENDS) >> TAG_HEAP_SHIFT) - 1; }

/* False for a pointer outside what the arena has handed out. Relaxed is enough: a pointer obtained from malloc is
 * handed over between threads by some synchronisation of the program's, which orders the growth of `extent` and the
 * writing of the tag before this read; for any other pointer either answer leads to an error message. */
static inline bool tag_of(const void *pointer, uint32_t *tag) {
    uintptr_t base = window.base;
    size_t offset = (uintptr_t)pointer - base;
    if (unlikely(offset >= __atomic_load_n(&window.extent, __ATOMIC_RELAXED))) {
        return false;
    }
    *tag = __atomic_load_n(&((const uint32_t *)base)[offset >> SLICE_BITS], __ATOMIC_RELAXED);
    return true;
}

/* The same for whoever needs no more than the lower half: one instruction loads and widens it. */
typedef uint16_t __attribute__((may_alias)) tag_half;
enum { TAG_LOWER_HALF = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ };

static inline bool tag_place_of(const void *pointer, size_t *place) {
    uintptr_t base = window.base;
    size_t offset = (uintptr_t)pointer - base;
    if (unlikely(offset >= GLANCE(window.extent))) {
        return false;
    }
    *place = GLANCE(((const tag_half *)base)[2 * (offset >> SLICE_BITS) + TAG_LOWER_HALF]);
    return true;
}

#endif
