/* Blocks above the classes in the hardened heap, and some small ones: a span each. The block ends where the page begins that nobody may touch, as nearly as its
 * alignment allows; so does, from below, its first page.
 *
 *   [ pages that nobody may touch | canary | block | canary ][ a page that nobody may touch ... the span's end ]
 *
 * A small one begins where its first page does, or ends where its last one does, by chance (hard_share.c says which have a span).
 *
 * Once freed, none of the span may be touched; its addresses go back after some more such blocks.
 * Its memory goes back at once, but for spans of up to 1 MiB: 32 MiB of those keep it
 * (RESIDENT_SLICES). Locked memory stays, and can be used again at once. */
#include "fence.h"
#include "hard_inside.h"
#include "keeper.h"
#include "limit.h"
#include "message.h"
#include "options.h"
#include "os.h"

enum {
    HELD_SPANS = 64,
    HELD_LEAST = 32, /* spans that are held back though their memory is much */
    HELD_SLICES = 4096, /* 256 MiB of addresses */
    RESIDENT_SLICES = 512, /* 32 MiB that may stay in memory: who takes them again has no page to fault in */
    GAP_MOST = 8, /* slices behind a block that nobody may touch, at most, and at most half as many as it has */
    ALIGNED_MOST = 1 << 20,
    GUARDS = 2, /* of a block in use: before it, and behind it */
};

/* What is known of a span's memory once it was freed: `examined` of its descriptor. */
enum { MEMORY_DIRTY, MEMORY_GONE, MEMORY_HELD };

/* Spans held back, the oldest at `next` when all places are taken. */
struct held_spans {
    uint32_t next, spans, slices;
    uint32_t resident; /* of the slices: those that keep their memory */
    uint32_t last_seen; /* `frees` when hard_large_purge looked last */
    uint32_t frees;
    uint32_t span[HELD_SPANS];
};

/* `lock` protects it, and how each large block was made. Small blocks are held back apart: they displace no large one. */
enum { HELD_LARGE, HELD_SMALL, HELD_KINDS };
static struct {
    struct lock lock;
    uint64_t chance; /* state of random_next */
    struct held_spans held[HELD_KINDS];
} large;

static struct held_spans *held_of(uint32_t slice) {
    return &large.held[arena_span(slice)->taken ? HELD_SMALL : HELD_LARGE];
}

void hard_large_open(uint64_t chance) { large.chance = chance; }

static unsigned char *base_of(uint32_t slice) { return arena_address(slice); }
static unsigned char *block_of(uint32_t slice) { return base_of(slice) + arena_span(slice)->offset; }

struct hard_pages hard_large_pages(uint32_t slice) {
    size_t page = os_page_bytes();
    unsigned char *block = block_of(slice);
    uintptr_t end = (uintptr_t)block + arena_span(slice)->used_bytes;
    return (struct hard_pages){block - (uintptr_t)block % page, block,
                               block + (bits_round_up(end, page) - (uintptr_t)block)};
}

/* The same as long as the block is there, whatever is left of it. */
static uint64_t canary_at(uint32_t slice) {
    return end_of(block_of(slice), 0, MADE_BY_MALLOC, arena_span(slice)->free_blocks).canary;
}

/* Bytes before the block, at least: a page, but as many as it is aligned to; none where that is so much that the addresses would be dear. */
static size_t room_before(size_t alignment) {
    return alignment <= ALIGNED_MOST ? bits_max(alignment, os_page_bytes()) : 0;
}

static uint32_t slices_of(size_t size, size_t alignment) {
    size_t bytes = room_before(alignment) + size + os_page_bytes();
    return (uint32_t)((bytes + SLICE_BYTES - 1) >> SLICE_BITS);
}

/* How far the next block lies behind this one's end nobody can guess. */
static uint32_t gap_behind(uint32_t slices) {
    if (option_value(OPTION_RANDOM) == 0 || option_value(OPTION_GUARD_PAGES) == 0) {
        return 0;
    }
    lock_take(&large.lock);
    uint32_t gap = random_below(&large.chance, (uint32_t)bits_min(slices / 2 + 1, GAP_MOST) + 1);
    lock_free(&large.lock);
    return gap;
}

/* Whether a small block lies at the start of its pages. */
static bool lies_at_start(void) {
    if (option_value(OPTION_RANDOM) == 0) {
        return false;
    }
    lock_take(&large.lock);
    bool at_start = random_next(&large.chance) >> 63 != 0;
    lock_free(&large.lock);
    return at_start;
}

/* From the span's start to the block's, of which `last` is the most that there is room for. */
static uint32_t offset_of(size_t last, size_t alignment, bool small) {
    size_t least = room_before(alignment);
    return least == 0 || (small && lies_at_start()) ? (uint32_t)least : (uint32_t)(last & ~(alignment - 1));
}

void *hard_large_take(size_t size, size_t alignment, enum made made, bool small) {
    size_t page = os_page_bytes();
    if (size > (size_t)1 << 46 || alignment > (size_t)1 << 46) {
        return NULL;
    }
    alignment = bits_max(alignment, 16);
    uint32_t needed = slices_of(size, alignment), slices = needed + gap_behind(needed);
    uint32_t aligned = (uint32_t)(bits_max(alignment, SLICE_BYTES) >> SLICE_BITS);
    bool zero;
    uint32_t slice = arena_take(slices, aligned, ARENA_NO_USE, &zero);
    if (slice == 0 && slices > needed) {
        slices = needed;
        slice = arena_take(slices, aligned, ARENA_NO_USE, &zero);
    }
    if (slice == 0) {
        return NULL;
    }
    size_t bytes = (size_t)slices << SLICE_BITS;
    size_t last = ((size_t)needed << SLICE_BITS) - page - size; /* the block may begin here at the latest */
    struct span *span = arena_span(slice);
    span->offset = offset_of(last, alignment, small);
    span->taken = small;
    span->used_bytes = size;
    span->size_class = (uint8_t)made;
    for (uint32_t i = 0; i < slices; i++) {
        arena_span(slice + i)->first = slice;
    }
    unsigned char *block = block_of(slice);
    struct hard_pages pages = hard_large_pages(slice);
    if (!zero) {
        memset(pages.from, 0, (size_t)(pages.to - pages.from));
    }
    span->uncounted = hard_uncount(base_of(slice), (size_t)(pages.from - base_of(slice)), zero) +
                      hard_uncount(pages.to, bytes - (size_t)(pages.to - base_of(slice)), zero);
    span->free_blocks = hard_secret.generation;
    if (option_value(OPTION_CANARIES) != 0) {
        uint64_t canary = canary_at(slice);
        canary_write(canary, pages.from, block); /* a multiple of 16 both */
        canary_write(canary, block + size, pages.to);
    }
    unsigned guards = 0;
    if (option_value(OPTION_GUARD_PAGES) != 0) {
        if (pages.from > base_of(slice)) {
            guards += hard_guard(base_of(slice), (size_t)(pages.from - base_of(slice)));
        }
        guards += hard_guard(pages.to, bytes - (size_t)(pages.to - base_of(slice)));
    }
    span->clean_pages = (uint16_t)guards;
    fence_release(); /* who sees the tag sees the canaries: hard_large_check */
    arena_tag(slice, slices, TAG_HARD_LARGE);
    return block;
}

/* Its pages are gone, and nobody may touch it: the limit does not count it any more. */
static void note_gone(uint32_t slice) {
    struct span *span = arena_span(slice);
    size_t bytes = (size_t)span->slices << SLICE_BITS;
    span->examined = MEMORY_GONE;
    limit_release(bytes - span->uncounted);
    span->uncounted = bytes;
}

/* The limit counts all of it again, as of any span. Free ones go back for that. Where there is no room for it all the same, its own memory does. */
static void count_whole(uint32_t slice) {
    struct span *span = arena_span(slice);
    hard_count_again(span->uncounted);
    span->uncounted = 0;
    bool lacks = span->examined == MEMORY_HELD && limit_lack_of_own(0) > 0;
    if (lacks && os_purge(base_of(slice), (size_t)span->slices << SLICE_BITS)) {
        note_gone(slice);
    }
}

/* Nobody holds it back any more. All of it can be touched again, and reads as zero where the kernel took its pages. */
static void let_go(uint32_t slice) {
    size_t bytes = (size_t)arena_span(slice)->slices << SLICE_BITS;
    if (arena_span(slice)->examined != MEMORY_GONE) {
        count_whole(slice);
    }
    bool clean = arena_span(slice)->examined == MEMORY_GONE;
    unsigned guards = arena_span(slice)->clean_pages;
    if (guards > 0 && !hard_unguard(base_of(slice), bytes, guards)) {
        limit_charge(clean ? bytes : 0); /* for hard_closed_keep, which counts anew */
        hard_closed_keep(slice, guards);
    } else if (clean) {
        arena_give_clean(slice);
    } else {
        (void)arena_give(slice);
        arena_age();
    }
}

/* Slices of memory that a span needs, without what nobody may touch: about. */
static uint32_t memory_of(uint32_t slice) { return (uint32_t)(arena_span(slice)->used_bytes >> SLICE_BITS) + 1; }

/* With the lock, as the next two. */
static void count_in(struct held_spans *held, uint32_t slice) {
    const struct span *span = arena_span(slice);
    held->spans++;
    held->slices += span->slices;
    held->resident += span->examined == MEMORY_HELD ? memory_of(slice) : 0;
}

static void count_out(struct held_spans *held, uint32_t slice) {
    const struct span *span = arena_span(slice);
    held->spans--;
    held->slices -= span->slices;
    held->resident -= span->examined == MEMORY_HELD ? memory_of(slice) : 0;
}

/* Puts a span, 0 for none, where the oldest is, which is returned. */
static uint32_t exchange(struct held_spans *held, uint32_t slice) {
    uint32_t oldest = held->span[held->next];
    if (slice != 0) {
        count_in(held, slice);
        held->frees++;
    }
    if (oldest != 0) {
        count_out(held, oldest);
    }
    held->span[held->next] = slice;
    held->next = (held->next + 1) % HELD_SPANS;
    return oldest;
}

static void hold(uint32_t slice) {
    bool holds = option_value(OPTION_QUARANTINE_KIB) != 0 && arena_span(slice)->slices <= HELD_SLICES;
    if (!holds) {
        let_go(slice);
        return;
    }
    struct held_spans *held = held_of(slice);
    bool more = true;
    while (more) {
        lock_take(&large.lock);
        uint32_t oldest = exchange(held, slice);
        more = held->slices > HELD_SLICES || (held->resident > RESIDENT_SLICES && held->spans > HELD_LEAST);
        lock_free(&large.lock);
        slice = 0;
        if (oldest != 0) {
            let_go(oldest);
        }
    }
}

/* Whether a freed span may keep its memory while it is held back: if the program keeps freed memory at all, and of blocks of which many are held
 * back within the bound. */
static bool may_keep_memory(uint32_t slice) {
    return (uint64_t)option_value(OPTION_RETAIN_MIB) * 4 >= (uint64_t)RESIDENT_SLICES * SLICE_BYTES >> 20 &&
           option_value(OPTION_QUARANTINE_KIB) != 0 && memory_of(slice) <= RESIDENT_SLICES / HELD_LEAST;
}

/* One that keeps its memory, out of its place, which is then empty; 0 when there is none. */
static uint32_t pick_resident(struct held_spans *held, bool all, unsigned *place) {
    uint32_t found = 0;
    lock_take(&large.lock);
    if (all || held->last_seen == held->frees) {
        for (unsigned i = 0; found == 0 && held->resident > 0 && i < HELD_SPANS; i++) {
            if (held->span[i] != 0 && arena_span(held->span[i])->examined == MEMORY_HELD) {
                found = held->span[i];
                count_out(held, found);
                held->span[i] = 0;
                *place = i;
            }
        }
    } else {
        held->last_seen = held->frees; /* the next look gives back what no block was freed after */
    }
    lock_free(&large.lock);
    return found;
}

static void put_back(struct held_spans *held, uint32_t slice, unsigned place) {
    lock_take(&large.lock);
    bool fits = held->span[place] == 0;
    if (fits) {
        count_in(held, slice);
        held->span[place] = slice;
    }
    lock_free(&large.lock);
    if (!fits) {
        let_go(slice);
    }
}

static size_t purge(struct held_spans *held, bool all, bool *more) {
    size_t purged = 0;
    unsigned place;
    for (uint32_t slice; (slice = pick_resident(held, all, &place)) != 0;) {
        size_t bytes = (size_t)arena_span(slice)->slices << SLICE_BITS;
        bool gone = os_purge(base_of(slice), bytes);
        if (gone) {
            purged += bytes;
            note_gone(slice);
            put_back(held, slice, place);
        } else {
            arena_span(slice)->examined = MEMORY_DIRTY;
            let_go(slice);
        }
    }
    lock_take(&large.lock);
    *more |= held->resident > 0;
    lock_free(&large.lock);
    return purged;
}

size_t hard_large_purge(bool all, bool *more) {
    size_t purged = 0;
    for (unsigned kind = 0; kind < HELD_KINDS; kind++) {
        purged += purge(&large.held[kind], all, more);
    }
    return purged;
}

static void check_canaries(uint32_t slice) {
    const unsigned char *block = block_of(slice);
    size_t size = arena_span(slice)->used_bytes;
    struct hard_pages pages = hard_large_pages(slice);
    if (option_value(OPTION_CANARIES) == 0) {
        return;
    }
    uint64_t canary = canary_at(slice);
    const unsigned char *broken = canary_broken(canary, pages.from, block);
    if (unlikely(broken != NULL)) {
        message_underflow(block, "size", size, (size_t)(block - broken));
    }
    broken = canary_broken(canary, block + size, pages.to);
    if (unlikely(broken != NULL)) {
        message_overflow(block, "size", size, (size_t)(broken - block) - size + 1);
    }
}

void hard_large_give(void *block, enum made made, size_t size) {
    uint32_t slice = hard_slab_of(block);
    struct span *span = arena_span(slice);
    size_t bytes = (size_t)span->slices << SLICE_BITS;
    lock_take(&large.lock);
    enum made was = (enum made)span->size_class;
    bool starts = block == block_of(slice);
    size_t told = span->used_bytes;
    if (likely(starts && (int)was != HARD_FREED)) {
        hard_check_kind(block, was, made, told, size);
        span->size_class = HARD_FREED;
    }
    lock_free(&large.lock);
    if (unlikely((int)was == HARD_FREED)) {
        message_double_free(block, "size", told);
    }
    if (unlikely(!starts)) {
        message_interior_pointer(block, "size", told);
    }
    check_canaries(slice);
    if (span->taken) {
        struct hard_pages pages = hard_large_pages(slice);
        hard_share_give((size_t)(pages.to - pages.from));
    }
    bool whole = option_value(OPTION_GUARD_PAGES) != 0 && hard_guard_whole(base_of(slice), bytes, &span->clean_pages);
    bool kept = whole && may_keep_memory(slice); /* nobody may touch it: as it is when it is taken again */
    bool purged = !kept && os_purge(base_of(slice), bytes);
    /* what can be touched may be written to by who believes the block his */
    span->examined = kept ? MEMORY_HELD : MEMORY_DIRTY;
    if (purged && whole) {
        note_gone(slice);
    }
    if (kept || purged) {
        hold(slice);
        if (kept) {
            keeper_wish(); /* which gives the memory back when the program frees no more */
        }
    } else { /* locked memory: to hold it back would not be addresses alone, but as much memory */
        let_go(slice);
    }
}

bool hard_large_has_room(const void *block) { return arena_span(hard_slab_of(block))->used_bytes >= sizeof(void *); }

bool hard_large_size(const void *block, size_t *size) {
    uint32_t slice = hard_slab_of(block);
    *size = arena_span(slice)->used_bytes;
    return block == block_of(slice) && (int)arena_span(slice)->size_class != HARD_FREED;
}

void hard_large_shrink(void *block, size_t size) {
    uint32_t slice = hard_slab_of(block);
    struct span *span = arena_span(slice);
    lock_take(&large.lock);
    hard_check_kind(block, (enum made)span->size_class, MADE_BY_MALLOC, span->used_bytes, SIZE_UNTOLD);
    check_canaries(slice);
    unsigned char *end = hard_large_pages(slice).to;
    span->used_bytes = size;
    unsigned char *to = hard_large_pages(slice).to;
    if (option_value(OPTION_CANARIES) != 0) {
        canary_write(canary_at(slice), (unsigned char *)block + size, to);
    }
    lock_free(&large.lock);
    if (end > to) {
        if (span->taken) {
            hard_share_give((size_t)(end - to));
        }
        if (os_purge(to, (size_t)(end - to))) {
            span->uncounted += (size_t)(end - to);
            limit_release((size_t)(end - to));
        }
        if (span->clean_pages == GUARDS) { /* one of them lies behind, and begins earlier now */
            (void)os_guard(to, (size_t)(end - to));
        }
    }
}

size_t hard_large_check(uint32_t slice, struct patience *patience) {
    uint32_t tag;
    if (!lock_take_within(&large.lock, patience)) { /* what is in use stays so */
        return 0;
    }
    bool used = tag_of(arena_address(slice), &tag) && tag == TAG_HARD_LARGE && arena_span(slice)->first == slice &&
                (int)arena_span(slice)->size_class != HARD_FREED;
    fence_acquire(); /* see hard_large_take */
    if (used) {
        check_canaries(slice);
    }
    lock_free(&large.lock);
    return used;
}

bool hard_large_reclaim(void) {
    bool any = false;
    for (unsigned i = 0; i < HELD_KINDS * HELD_SPANS; i++) {
        lock_take(&large.lock);
        uint32_t oldest = exchange(&large.held[i % HELD_KINDS], 0);
        lock_free(&large.lock);
        if (oldest != 0) {
            let_go(oldest);
            any = true;
        }
    }
    return any;
}

void hard_large_figures(size_t *held) {
    lock_take(&large.lock);
    *held = 0;
    for (unsigned kind = 0; kind < HELD_KINDS; kind++) {
        *held += (size_t)large.held[kind].slices << SLICE_BITS;
    }
    lock_free(&large.lock);
}

void hard_large_after_fork(void) { lock_reset(&large.lock); }
