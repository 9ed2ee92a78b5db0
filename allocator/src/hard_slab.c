/* Slots in slabs of the hardened heap: a bit each that tells which are free, in the room that the arena has for a slab's bitmap. */
#include "hard_inside.h"
#include "keeper.h"
#include "limit.h"
#include "message.h"
#include "options.h"
#include "os.h"
#include "street.h"

/* Two mappings each, of 65,530 that a process may have as a rule: three quarters. Fewer if the kernel allows fewer. Relaxed: written once, at start. */
enum { GUARDS_MOST = 24 * 1024 };
static _Atomic uint32_t guards_most = GUARDS_MOST;

void hardened_note_start(void) {
    uint32_t most = (uint32_t)bits_min((size_t)os_mappings_most() / 8 * 3, GUARDS_MOST);
    atomic_store_explicit(&guards_most, most, memory_order_relaxed);
}

/* Relaxed: figures, and a bound that may be passed by a few. */
static _Atomic uint32_t guards, unguarded;

bool hard_guard(void *at, size_t bytes) {
    uint32_t most = atomic_load_explicit(&guards_most, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&guards, 1, memory_order_relaxed) < most && os_guard(at, bytes)) {
        return true;
    }
    atomic_fetch_sub_explicit(&guards, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&unguarded, 1, memory_order_relaxed);
    return false;
}

bool hard_guard_whole(void *at, size_t bytes, uint16_t *had) {
    atomic_fetch_sub_explicit(&guards, *had, memory_order_relaxed);
    bool whole = hard_guard(at, bytes);
    if (whole) {
        *had = 1;
    } else {
        atomic_fetch_add_explicit(&guards, *had, memory_order_relaxed);
    }
    return whole;
}

bool hard_unguard(void *at, size_t bytes, unsigned had) {
    if (!os_commit(at, bytes)) {
        return false;
    }
    atomic_fetch_sub_explicit(&guards, had, memory_order_relaxed);
    return true;
}

size_t hard_uncount(void *at, size_t bytes, bool zero) {
    bool gone = bytes > 0 && (zero ? !street_is_locked() : limit_is_set() && os_purge(at, bytes));
    limit_release(gone ? bytes : 0);
    return gone ? bytes : 0;
}

void hard_count_again(size_t bytes) {
    while (limit_lack_of_own(bytes) > 0 && arena_purge_piece()) {
    }
    limit_charge(bytes);
}

size_t hard_unguarded(void) { return atomic_load_explicit(&unguarded, memory_order_relaxed); }

static uint64_t *free_bits(uint32_t slab) { return (uint64_t *)(void *)(arena_bitmaps + (size_t)slab * BITMAP_BYTES); }

static uint32_t words_of(uint32_t slots) { return (slots + 63) / 64; }

/* The slab's end is a page that nobody may touch. A slice more where that would leave few slots. */
static uint32_t slices_of(unsigned class) {
    bool more = class != HARD_NOTHING && (class_bytes[class] > 4096 || os_page_bytes() > 4096);
    return class == HARD_NOTHING ? 1 : class_slices[class] + more;
}

static uint32_t slots_of(unsigned class) {
    size_t bytes = ((size_t)slices_of(class) << SLICE_BITS) - (class == HARD_NOTHING ? 0 : os_page_bytes());
    return (uint32_t)(bytes / hard_slot_bytes(class));
}

size_t hard_slab_guard(unsigned class) {
    return class == HARD_NOTHING ? 0 : bits_round_up(slots_of(class) * hard_slot_bytes(class), os_page_bytes());
}

/* Slabs for which the child of a fork takes fresh pages. What it clears it has to copy first, all of it; of fresh pages it gets those that it
 * touches. Few, since a child that lives on comes to pages of its own, which are cleared sooner than given back. Relaxed: one more or less is no matter. */
enum { FRESH_IN_CHILD = 64 };
static _Atomic uint32_t fresh;

void hard_slab_after_fork(void) { atomic_store_explicit(&fresh, FRESH_IN_CHILD, memory_order_relaxed); }

static bool takes_fresh_pages(void) {
    uint32_t left = atomic_load_explicit(&fresh, memory_order_relaxed);
    if (likely(left == 0) || keeper_is_confined()) {
        return false;
    }
    atomic_store_explicit(&fresh, left - 1, memory_order_relaxed);
    return true;
}

static void clear(void *base, size_t bytes) {
    if (!takes_fresh_pages() || !os_purge(base, bytes)) {
        memset(base, 0, bytes);
    }
}

uint32_t hard_slab_make(unsigned class, unsigned shard) {
    uint32_t slices = slices_of(class);
    bool zero;
    uint32_t slab = arena_take(slices, 1, ARENA_NO_USE, &zero);
    if (slab == 0) {
        return 0;
    }
    char *base = arena_address(slab);
    size_t guard = hard_slab_guard(class);
    if (!zero && guard > 0) {
        clear(base, guard);
    }
    struct span *span = arena_span(slab);
    span->size_class = (uint8_t)class;
    span->heap = (uint16_t)shard;
    span->blocks = slots_of(class);
    span->free_blocks = span->blocks;
    span->reciprocal = class == HARD_NOTHING ? class_reciprocals[0] : class_reciprocals[class];
    for (uint32_t i = 1; i + 1 < slices; i++) { /* the arena has set, and reads, the ends */
        arena_span(slab + i)->first = slab;
    }
    uint32_t words = words_of(span->blocks);
    for (uint32_t w = 0; w < words; w++) {
        free_bits(slab)[w] = bits_low((unsigned)bits_min(span->blocks - 64 * w, 64));
    }
    for (uint32_t w = words; w < BITMAP_BYTES / 8; w++) { /* no page was touched */
        free_bits(slab)[w] = 0;
    }
    span->summary = bits_low(words);
    size_t rest = ((size_t)slices << SLICE_BITS) - guard;
    span->uncounted = hard_uncount(base + guard, rest, zero);
    span->taken = (class == HARD_NOTHING || option_value(OPTION_GUARD_PAGES) != 0) && hard_guard(base + guard, rest);
    return slab;
}

void hard_slab_unmake(uint32_t slab) {
    const struct span *span = arena_span(slab);
    size_t guard = hard_slab_guard(span->size_class);
    size_t rest = ((size_t)span->slices << SLICE_BITS) - guard;
    hard_count_again(span->uncounted);
    if (!span->taken || hard_unguard((char *)arena_address(slab) + guard, rest, 1)) {
        (void)arena_give(slab);
        arena_age();
    } else {
        hard_closed_keep(slab, 1);
    }
}

/* The lowest set bit from a random one on, going round. */
static unsigned some_bit(uint64_t word, unsigned turn) {
    uint64_t turned = word >> turn | word << (-turn & 63);
    return (bits_lowest(turned) + turn) & 63;
}

/* A bit for each page of the slab from which a slot was ever taken, behind the bits of the slots. */
enum { PAGE_WORDS = 4, PAGE_WORDS_FROM = BITMAP_BYTES / 8 - PAGE_WORDS };
_Static_assert(SLICE_BYTES / HARD_LEAST <= 64 * PAGE_WORDS_FROM, "a slab's slots have bits before them");

/* A page that is written first takes one fault. One that is read first takes two, and who takes a slot reads it. */
static void touch(uint32_t slab, uint64_t *at) {
    size_t page = ((uintptr_t)at - (uintptr_t)arena_address(slab)) / os_page_bytes() % ((size_t)64 * PAGE_WORDS);
    uint64_t *word = &free_bits(slab)[PAGE_WORDS_FROM + page / 64], bit = UINT64_C(1) << page % 64;
    if ((*word & bit) == 0) {
        *word |= bit;
        *(volatile uint64_t *)at = 0;
    }
}

static void *take_slot(uint32_t slab, uint32_t slot) {
    struct span *span = arena_span(slab);
    uint64_t *word = &free_bits(slab)[slot / 64];
    *word ^= UINT64_C(1) << slot % 64;
    if (*word == 0) {
        span->summary ^= UINT64_C(1) << slot / 64;
    }
    span->free_blocks--;
    unsigned char *block = hard_slab_block(slab, slot);
    if (span->size_class !=
        HARD_NOTHING) { /* of no bytes: it has as many slots as there are bits, and nobody touches them */
        touch(slab, (uint64_t *)(void *)block);
        touch(slab, (uint64_t *)(void *)(block + hard_slot_bytes(span->size_class) - sizeof(uint64_t)));
    }
    return block;
}

/* The first free slot from one on, below another; the latter where there is none. */
static uint32_t free_from(uint32_t slab, uint32_t from, uint32_t below) {
    while (from < below) {
        uint64_t word = free_bits(slab)[from / 64] >> from % 64;
        if (word != 0) {
            return (uint32_t)bits_min(from + bits_lowest(word), below);
        }
        from = (from / 64 + 1) * 64;
    }
    return below;
}

/* Somewhere in the slab, around a free slot. */
static struct hard_window draw_window(uint32_t slab, uint64_t *chance) {
    enum { BYTES = 8192 };
    const struct span *span = arena_span(slab);
    uint32_t slots = (uint32_t)bits_min(bits_max(BYTES / hard_slot_bytes(span->size_class), 1), span->blocks);
    uint32_t turn = random_below(chance, span->blocks), word = some_bit(span->summary, turn / 64);
    uint32_t slot = 64 * word + some_bit(free_bits(slab)[word], turn % 64);
    uint32_t before = random_below(chance, slots), first = slot > before ? slot - before : 0;
    return (struct hard_window){slab, first, (uint32_t)bits_min(first + slots, span->blocks)};
}

void *hard_slab_take(uint32_t slab, struct hard_window *window, uint64_t *chance) {
    if (option_value(OPTION_RANDOM) == 0) {
        return take_slot(slab, free_from(slab, 0, arena_span(slab)->blocks));
    }
    if (window->slab != slab || free_from(slab, window->first, window->end) == window->end) {
        *window = draw_window(slab, chance);
    }
    uint32_t slot = free_from(slab, window->first + random_below(chance, window->end - window->first), window->end);
    return take_slot(slab, slot < window->end ? slot : free_from(slab, window->first, window->end));
}

OUT_OF_LINE _Noreturn void hard_slab_misuse(uint32_t slab, const void *pointer) {
    message_interior_pointer(pointer, "size class", hard_slot_bytes(arena_span(slab)->size_class));
}

bool hard_slab_is_free(uint32_t slab, uint32_t slot) { return (free_bits(slab)[slot / 64] >> (slot % 64) & 1) != 0; }

void hard_slab_free(uint32_t slab, uint32_t slot) {
    struct span *span = arena_span(slab);
    if (unlikely(hard_slab_is_free(slab, slot))) { /* two threads freed it at the same instant */
        message_double_free(hard_slab_block(slab, slot), "size class", hard_slot_bytes(span->size_class));
    }
    free_bits(slab)[slot / 64] |= UINT64_C(1) << (slot % 64);
    span->summary |= UINT64_C(1) << (slot / 64);
    span->free_blocks++;
}
