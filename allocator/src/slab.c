#include "slab.h"

#include "fence.h"
#include "limit.h"
#include "message.h"
#include "os.h"

enum { PIECE_BYTES = 256 * 1024 }; /* of pages purged at a time */
enum { BLOCKS_MASK = 8191 }; /* the bits of a number of blocks */

uint32_t slab_make(unsigned class, unsigned heap, bool dense) {
    uint32_t slices = class_slices[class];
    bool zero;
    uint32_t slab = arena_take(slices, 1, dense ? arena_use_of_slab(class) : ARENA_NO_USE, &zero);
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
    span->taken = TAKEN_ALL;
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
    return slab;
}

void slab_publish(uint32_t slab) {
    const struct span *span = arena_span(slab);
    arena_tag(slab, span->slices, tag_of_slab(span->heap, span->size_class));
}

void slab_unmake(uint32_t slab) { arena_give_slab(slab); }

/* -- pages --------------------------------------------------------------------------------------------------- */

/* Pages are numbered from the slab's start. Bits of `clean` are 32 a slice: enough for pages of 2 KiB. */
static bool is_clean(uint32_t slab, size_t page, size_t in_slice) {
    return (arena_span(slab + (uint32_t)(page / in_slice))->clean >> (page % in_slice) & 1) != 0;
}

static void flip_clean(uint32_t slab, size_t page, size_t in_slice) {
    arena_span(slab + (uint32_t)(page / in_slice))->clean ^= UINT32_C(1) << (page % in_slice);
}

/* The pages of [offset, end), in bytes from the slab's start, are clean no longer. */
static void soil_pages(uint32_t slab, size_t offset, size_t end) {
    size_t page = os_page_bytes();
    for (size_t p = offset / page; p <= (end - 1) / page; p++) {
        if (is_clean(slab, p, SLICE_BYTES / page)) {
            flip_clean(slab, p, SLICE_BYTES / page);
            arena_span(slab)->clean_pages--;
        }
    }
}

/* The same for those of taken blocks, blocks[0..count). */
static OUT_OF_LINE void soil(uint32_t slab, void **blocks, unsigned count) {
    const struct span *span = arena_span(slab);
    uintptr_t start = (uintptr_t)arena_address(slab);
    for (unsigned i = 0; i < count && span->clean_pages > 0; i++) {
        size_t offset = (uintptr_t)blocks[i] - start;
        soil_pages(slab, offset, offset + class_bytes[span->size_class]);
    }
}

/* The number of the first block from `number` on whose bit equals `set`, or the number of blocks. Relaxed: tails are read
 * without the lock, and the bits that the caller asks for do not change meanwhile (slab_tails). */
static size_t next_block(const uint64_t *bitmap, size_t number, size_t blocks, bool set) {
    while (number < blocks) {
        uint64_t bits = __atomic_load_n(&bitmap[number / 64], __ATOMIC_RELAXED);
        uint64_t word = (set ? bits : ~bits) & ~bits_low(number % 64);
        if (word != 0) {
            return bits_min((number & ~(size_t)63) + bits_lowest(word), blocks);
        }
        number = (number & ~(size_t)63) + 64;
    }
    return blocks;
}

/* The number behind the last block of [from, to) that is in use; `from` if all are free. */
static size_t behind_used(const uint64_t *bitmap, size_t from, size_t to) {
    while (to > from) {
        size_t word = (to - 1) / 64 * 64;
        uint64_t used = ~bitmap[word / 64] & bits_low((unsigned)(to - word));
        if (used != 0) {
            return bits_max(from, word + bits_highest(used) + 1);
        }
        to = word;
    }
    return from;
}

bool slab_begin_cleaning(uint32_t slab, enum cleaning cleaning, bool *busy) {
    struct span *span = arena_span(slab);
    bool taken = (span->taken & cleaning) != 0;
    *busy = taken && cleaning != CLEAN_ALL && span->free_blocks > 0;
    span->taken &= (uint8_t)~cleaning;
    if (taken || cleaning == CLEAN_ALL) {
        span->examined = 0;
    }
    if (*busy || span->free_blocks == span->examined || os_page_bytes() > SLICE_BYTES) {
        return false;
    }
    span->examined = span->free_blocks & BLOCKS_MASK;
    return true;
}

/* Takes blocks [first, first + blocks) out of the bitmap, in which they are, or puts them back; one word at a time. */
static void change_blocks(uint32_t slab, uint32_t first, uint32_t blocks, bool put) {
    struct span *span = arena_span(slab);
    for (uint32_t number = first, end = first + blocks; number < end;) {
        uint32_t in_word = (uint32_t)bits_min(64 - number % 64, end - number);
        uint64_t *word = span->bitmap + number / 64;
        uint64_t mask = bits_low(in_word) << (number % 64);
        if (unlikely(put && (*word & mask) != 0)) { /* freed while it was nobody's */
            number += bits_lowest((*word & mask) >> (number % 64));
            void *block = (char *)arena_address(slab) + (size_t)number * class_bytes[span->size_class];
            message_double_free(block, "size class", class_bytes[span->size_class]);
        }
        *word ^= mask;
        uint64_t bit = UINT64_C(1) << (number / 64);
        span->summary = *word != 0 ? span->summary | bit : span->summary & ~bit;
        number += in_word;
    }
    span->free_blocks += put ? blocks : -blocks;
}

/* The first page from `page` on, below `end`, that is not clean; or `end`. */
static size_t unclean_page(uint32_t slab, size_t page, size_t end, size_t in_slice) {
    while (page < end && is_clean(slab, page, in_slice)) {
        page++;
    }
    return page;
}

/* A run of pages among [page, end) of which some are unclean, none when `pages` is 0. The clean ones of a slice go with its unclean ones:
 * where the kernel gives folios, an unclean one has brought in those beside it. */
static void choose_pages(uint32_t slab, struct slab_piece *piece, size_t page, size_t end) {
    size_t in_slice = SLICE_BYTES / os_page_bytes();
    size_t to = unclean_page(slab, page, end, in_slice);
    size_t last = bits_min(end, to + PIECE_BYTES / os_page_bytes()), unclean = 0;
    page = bits_max(page, to - to % in_slice);
    for (; to < last && (to % in_slice != 0 || !is_clean(slab, to, in_slice)); to++) {
        unclean += !is_clean(slab, to, in_slice);
    }
    piece->page = (uint32_t)page;
    piece->pages = unclean > 0 ? (uint32_t)(to - page) : 0;
    piece->unclean = (uint32_t)unclean;
}

bool slab_lift(uint32_t slab, enum cleaning cleaning, struct slab_piece *piece) {
    struct span *span = arena_span(slab);
    size_t page = os_page_bytes();
    size_t size = class_bytes[span->size_class];
    if ((span->taken & cleaning) != 0) {
        return false;
    }
    for (size_t from = piece->next; (from = next_block(span->bitmap, from, span->blocks, true)) < span->blocks;) {
        /* A run that ends before the next page does holds none, nor do others up to the last block in use on that page. */
        size_t first = (from * size + page - 1) / page;
        size_t needed = bits_min(((first + 1) * page + size - 1) / size, span->blocks);
        size_t behind = behind_used(span->bitmap, from, needed);
        if (behind > from) {
            from = behind;
            continue;
        }
        size_t to = next_block(span->bitmap, needed, span->blocks, false);
        /* What is left over behind the last block is free with it. */
        size_t end = to == span->blocks ? (size_t)span->slices << SLICE_BITS : to * size;
        choose_pages(slab, piece, first, end / page);
        if (piece->pages > 0) {
            size_t last = bits_min(((piece->page + piece->pages) * page + size - 1) / size, to);
            piece->first = (uint32_t)bits_min(piece->page * page / size, last - 1);
            piece->blocks = (uint32_t)last - piece->first;
            /* The block that the next page begins in: pages of it that are clean by then are passed over. */
            piece->next = (uint32_t)bits_min((piece->page + piece->pages) * page / size, to);
            change_blocks(slab, piece->first, piece->blocks, false);
            return true;
        }
        from = to;
    }
    return false;
}

bool slab_purge(uint32_t slab, const struct slab_piece *piece) {
    size_t page = os_page_bytes();
    return arena_purge_pages(slab, (char *)arena_address(slab) + piece->page * page, piece->pages * page,
                             piece->unclean * page);
}

size_t slab_put_back(uint32_t slab, const struct slab_piece *piece, bool purged) {
    struct span *span = arena_span(slab);
    size_t page = os_page_bytes();
    change_blocks(slab, piece->first, piece->blocks, true);
    if (!purged) {
        return 0;
    }
    for (size_t p = piece->page; p < piece->page + piece->pages; p++) {
        if (!is_clean(slab, p, SLICE_BYTES / page)) {
            flip_clean(slab, p, SLICE_BYTES / page);
        }
    }
    span->clean_pages = (uint16_t)(span->clean_pages + piece->unclean);
    return piece->unclean * page;
}

/* -- lent blocks --------------------------------------------------------------------------------------------- */

uint64_t *slab_tails(uint32_t slab) {
    size_t step = slab_bitmap_step(arena_span(slab)->size_class);
    size_t offset = (size_t)slab * BITMAP_BYTES + ((size_t)slab + 1) * step % BITMAP_BYTES;
    return (uint64_t *)(void *)(arena_bitmaps + offset);
}

static bool is_tail(const uint64_t *tails, size_t number) {
    return (__atomic_load_n(&tails[number / 64], __ATOMIC_RELAXED) >> (number % 64) & 1) != 0;
}

static void flip_tails(uint64_t *tails, size_t from, size_t to) {
    while (from < to) {
        size_t in_word = bits_min(64 - from % 64, to - from);
        uint64_t word = tails[from / 64] ^ bits_low((unsigned)in_word) << (from % 64);
        __atomic_store_n(&tails[from / 64], word, __ATOMIC_RELAXED);
        from += in_word;
    }
}

static bool has_tails(uint32_t slab) {
    const uint64_t *tails = slab_tails(slab);
    for (unsigned w = 0; w < (arena_span(slab)->blocks + 63) / 64; w++) {
        if (tails[w] != 0) {
            return true;
        }
    }
    return false;
}

/* Of how many of the slab's blocks the block is made, the first of which is *number. Stops the program if none starts there. */
static size_t parts(uint32_t slab, const void *block, size_t *number) {
    const struct span *span = arena_span(slab);
    const uint64_t *tails = slab_tails(slab);
    size_t size = class_bytes[span->size_class];
    size_t offset = (uintptr_t)block - (uintptr_t)arena_address(slab);
    size_t first = offset * span->reciprocal >> 32;
    /* Acquire: who finds the slab's tag finds the bits as they were made before it. */
    fence_acquire();
    if (unlikely(first * size != offset || first >= span->blocks || is_tail(tails, first))) {
        message_interior_pointer(block, "size class", size);
    }
    *number = first;
    return next_block(tails, first + 1, span->blocks, false) - first;
}

/* The largest class that a block of so many bytes holds. */
static unsigned class_within(size_t bytes) {
    unsigned class = class_of(bits_min(bytes, CLASS_LARGEST));
    return class_bytes[class] <= bytes ? class : class - 1;
}

size_t slab_lent_bytes(const void *block) {
    size_t number;
    uint32_t slab = slab_of(block);
    return parts(slab, block, &number) * class_bytes[arena_span(slab)->size_class];
}

unsigned slab_lent_class(const void *block) { return class_within(slab_lent_bytes(block)); }

unsigned slab_lent_slot(const void *block) { return slot_of(arena_span(slab_of(block))->heap, slab_lent_class(block)); }

struct clean_pages {
    size_t count, first, last;
};

/* The clean pages that so many blocks from `number` on lie on. */
static struct clean_pages clean_pages_of(uint32_t slab, size_t number, size_t blocks) {
    const struct span *span = arena_span(slab);
    size_t page = os_page_bytes(), size = class_bytes[span->size_class], last = ((number + blocks) * size - 1) / page;
    struct clean_pages clean = {0, 0, 0};
    for (size_t p = number * size / page; span->clean_pages > 0 && p <= last; p++) {
        if (is_clean(slab, p, SLICE_BYTES / page)) {
            clean.first = clean.count == 0 ? p : clean.first;
            clean.last = p;
            clean.count++;
        }
    }
    return clean;
}

/* Whether the run of free blocks from `at` on can be had, in which case its clean pages are charged; else *next is where to look next. */
static bool is_to_be_had(uint32_t slab, struct slab_run *run, size_t at, size_t *next) {
    size_t size = class_bytes[arena_span(slab)->size_class], page = os_page_bytes(), least = page;
    struct clean_pages clean = clean_pages_of(slab, at, run->blocks);
    if (clean.count == 0 || (run->purged && limit_take(clean.count * page))) {
        return true;
    }
    if (run->purged && clean.count > 1 && limit_lack_of_own(page) == 0) { /* one that begins later may need less */
        least = clean.count * page;
        *next = at + 1;
    } else { /* those that begin before the end of that page need it too */
        *next = ((clean.last + 1) * page + size - 1) / size;
    }
    run->lack = run->lack == 0 ? least : bits_min(run->lack, least);
    return false;
}

bool slab_find_run(uint32_t slab, struct slab_run *run, unsigned *runs) {
    const struct span *span = arena_span(slab);
    for (size_t at = run->number; *runs > 0; --*runs) {
        at = next_block(span->bitmap, at, span->blocks, true);
        at = (at + run->step - 1) / run->step * run->step;
        run->number = (uint32_t)at;
        if (at + run->blocks > span->blocks) {
            return false;
        }
        size_t end = next_block(span->bitmap, at, at + run->blocks, false);
        if (end < at + run->blocks) {
            at = end;
        } else if (is_to_be_had(slab, run, at, &at)) {
            return true;
        }
    }
    return false;
}

bool slab_has_run(uint32_t slab, unsigned class) {
    const struct span *span = arena_span(slab);
    return (span->taken & SEARCHED) != 0 || span->free_blocks != span->searched || class < span->searched_for;
}

void slab_note_searched(uint32_t slab, unsigned class) {
    struct span *span = arena_span(slab);
    span->taken &= (uint8_t)~SEARCHED;
    span->searched = span->free_blocks & BLOCKS_MASK;
    span->searched_for = class & 63;
}

void *slab_lend(uint32_t slab, uint32_t number, uint32_t blocks) {
    struct span *span = arena_span(slab);
    uint64_t *tails = slab_tails(slab);
    void *block = (char *)arena_address(slab) + (size_t)number * class_bytes[span->size_class];
    if (!slab_lends(block)) {
        for (unsigned w = 0; w < (span->blocks + 63) / 64; w++) {
            __atomic_store_n(&tails[w], 0, __ATOMIC_RELAXED);
        }
        /* Release: whoever has another block of the slab, and no lock, may find the tag any time. */
        fence_release();
        arena_tag(slab, span->slices, tag_of_lender(span->heap));
    }
    change_blocks(slab, number, blocks, false);
    flip_tails(tails, number + 1, number + blocks);
    if (span->clean_pages > 0) {
        size_t size = class_bytes[span->size_class];
        soil_pages(slab, number * size, (number + (size_t)blocks) * size);
    }
    span->taken = TAKEN_ALL;
    span->fresh = (uint32_t)bits_max(span->fresh, number + blocks);
    return block;
}

uint32_t slab_take_back(uint32_t slab, unsigned class, void *block) {
    const struct span *span = arena_span(slab);
    size_t number;
    uint32_t blocks = (uint32_t)parts(slab, block, &number);
    if (unlikely(class_within((size_t)blocks * class_bytes[span->size_class]) !=
                 class)) { /* lent anew since it was freed */
        message_double_free(block, "size class", class_bytes[class]);
    }
    flip_tails(slab_tails(slab), number + 1, number + blocks);
    change_blocks(slab, (uint32_t)number, blocks, true);
    if (blocks > 1 && !has_tails(slab)) {
        slab_publish(slab);
    }
    return blocks;
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
    span->taken = TAKEN_ALL;
    if (size >= CLASS_FRESH) { /* the last one taken is the highest */
        uint32_t behind = (uint32_t)(((uintptr_t)*blocks - (uintptr_t)base) * span->reciprocal >> 32) + 1;
        span->fresh = (uint32_t)bits_max(span->fresh, behind);
    }
    if (unlikely(span->clean_pages > 0)) {
        soil(slab, blocks, taken);
    }
    return taken;
}

/* slab_take_charged of blocks on no clean page, or of those whose clean pages are charged first. */
static unsigned take_charged(uint32_t slab, void **blocks, unsigned want, bool charges) {
    struct span *span = arena_span(slab);
    size_t page = os_page_bytes(), size = class_bytes[span->size_class], at = 0;
    unsigned taken = 0;
    while (taken < want && (at = next_block(span->bitmap, at, span->blocks, true)) < span->blocks) {
        struct clean_pages clean = clean_pages_of(slab, at, 1);
        if (clean.count > 0 && !(charges && limit_take(clean.count * page))) {
            /* Blocks that begin before the end of that page lie on it too, and need no less. */
            at = ((clean.first + 1) * page + size - 1) / size;
            continue;
        }
        *--blocks = (char *)arena_address(slab) + at * size;
        change_blocks(slab, (uint32_t)at, 1, false);
        span->taken = TAKEN_ALL;
        if (size >= CLASS_FRESH) {
            span->fresh = (uint32_t)bits_max(span->fresh, at + 1);
        }
        if (clean.count > 0) {
            soil(slab, blocks, 1);
        }
        taken++;
        at++;
    }
    return taken;
}

unsigned slab_take_charged(uint32_t slab, void **blocks, unsigned want) {
    unsigned taken = take_charged(slab, blocks, want, false);
    return taken + take_charged(slab, blocks - taken, want - taken, true);
}

struct zeros slab_next_zeros(uint32_t slab) {
    const struct span *span = arena_span(slab);
    size_t size = class_bytes[span->size_class];
    if (size < CLASS_FRESH) {
        return (struct zeros){0, 0};
    }
    unsigned word = bits_lowest(span->summary);
    size_t number = 64 * word + bits_lowest(span->bitmap[word]);
    if (number >= span->fresh) {
        return (struct zeros){0, (uint32_t)size};
    }
    if (span->clean_pages == 0) {
        return (struct zeros){0, 0};
    }
    size_t page = os_page_bytes(), in_slice = SLICE_BYTES / page;
    size_t start = number * size, end = start + size;
    size_t from = start / page, behind = (end + page - 1) / page;
    while (from < behind && !is_clean(slab, from, in_slice)) {
        from++;
    }
    size_t to = unclean_page(slab, from, behind, in_slice);
    if (from == to) {
        return (struct zeros){0, 0};
    }
    /* The block need not begin or end with a page. */
    return (struct zeros){(uint32_t)(bits_max(from * page, start) - start),
                          (uint32_t)(bits_min(to * page, end) - start)};
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
