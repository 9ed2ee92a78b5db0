/* Slabs against a model of one flag a block: what is free, in which order it is handed out, which pages go back to the
 * kernel, what stops the program. */
#include "slab.h"

#include <sys/mman.h>

#include "limit.h"
#include "os.h"
#include "pattern.h"
#include "scenario.h"
#include "street_walk.h"

enum { BLOCKS_MOST = 4096, FILLING = 0x5a };

static bool is_free[BLOCKS_MOST]; /* the model */

static char *address_of(uint32_t slab, uint32_t block) {
    return (char *)arena_address(slab) + (size_t)block * class_bytes[arena_span(slab)->size_class];
}

static void check_slab(uint32_t slab, unsigned class) {
    const struct span *span = arena_span(slab);
    const uint64_t *bitmap = span->bitmap;
    uint32_t blocks = class_blocks(class);
    uint32_t count = 0;
    EXPECT(span->state == SPAN_USED && span->slices == class_slices[class] && span->size_class == class &&
               span->blocks == blocks,
           "class %u: state %u, %u slices, class %u, %u blocks", class, span->state, span->slices, span->size_class,
           span->blocks);
    for (unsigned w = 0; w < 64; w++) {
        uint64_t wanted = 0;
        for (unsigned b = 0; b < 64 && w * 64 + b < blocks; b++) {
            wanted |= (uint64_t)is_free[w * 64 + b] << b;
            count += is_free[w * 64 + b];
        }
        if (w * 64 < blocks) {
            EXPECT(bitmap[w] == wanted, "class %u, word %u: %#llx instead of %#llx", class, w,
                   (unsigned long long)bitmap[w], (unsigned long long)wanted);
        }
        EXPECT((span->summary >> w & 1) == (wanted != 0), "class %u: the summary of word %u", class, w);
    }
    EXPECT(span->free_blocks == count, "class %u: %u free blocks instead of %u", class, span->free_blocks, count);
}

static void check_taking(uint32_t slab, unsigned class, unsigned want) {
    void *blocks[BLOCKS_MOST];
    EXPECT(want <= BLOCKS_MOST, "%u", want);
    if (want == 0 || arena_span(slab)->free_blocks == 0) {
        return; /* no heap asks for nothing, or asks a full slab */
    }
    memset(blocks, 0, sizeof blocks);
    void **end = blocks + BLOCKS_MOST;
    unsigned taken = slab_take(slab, end, want);
    uint32_t next = 0;
    for (unsigned i = 0; i < taken; i++) {
        while (next < BLOCKS_MOST && !is_free[next]) {
            next++;
        }
        EXPECT(next < class_blocks(class), "class %u: more taken than were free", class);
        EXPECT(end[-1 - (int)i] == address_of(slab, next), "class %u: block %u is not number %u of %u taken", class,
               next, i, taken);
        is_free[next] = false;
    }
    EXPECT(taken == BLOCKS_MOST || end[-1 - (int)taken] == NULL, "class %u: stored more than it says", class);
    for (uint32_t i = 0; taken < want && i < class_blocks(class); i++) {
        EXPECT(!is_free[i], "class %u: %u of %u taken, block %u was left", class, taken, want, i);
    }
}

static uint32_t make(unsigned class, unsigned heap) {
    uint32_t slab = slab_make(class, heap, false);
    slab_publish(slab);
    EXPECT(slab != 0, "no memory");
    for (uint32_t i = 0; i < BLOCKS_MOST; i++) {
        is_free[i] = i < class_blocks(class);
    }
    for (uint32_t i = 0; i < class_slices[class]; i++) {
        EXPECT(street_tag(slab + i) == tag_of_slab(heap, class), "slice %u: tag %#x", i, street_tag(slab + i));
        EXPECT(slab_of((char *)arena_address(slab + i) + SLICE_BYTES - 1) == slab, "slice %u names another slab", i);
    }
    check_slab(slab, class);
    return slab;
}

/* It says that the block may be the slab's first exactly when no other is free in the same word of the bitmap. */
static void check_giving_one(uint32_t slab, const struct slab_shape *shape, void *block) {
    size_t number = (uintptr_t)((char *)block - (char *)arena_address(slab)) / shape->size;
    bool alone = arena_span(slab)->bitmap[number / 64] == 0;
    EXPECT(slab_give_one(slab, shape, block) == alone, "block %zu: alone in its word or not", number);
}

static unsigned give_stack(uint32_t slab, void **top) {
    struct slab_shape shape = slab_shape(arena_span(slab)->size_class);
    uintptr_t start = (uintptr_t)arena_address(slab);
    void **at = top;
    do {
        if (slab_is_run(&shape, at[0], at[-1])) {
            at -= slab_give_run(slab, at);
        } else {
            check_giving_one(slab, &shape, *at--);
        }
    } while ((uintptr_t)*at - start < (size_t)shape.slices << SLICE_BITS);
    return (unsigned)(top - at);
}

/* Gives some of the blocks in use back, in no order of addresses: in runs that a NULL or a stranger's block ends. */
static void check_giving(uint32_t slab, unsigned class, uint64_t *random) {
    static char stranger;
    void *stack[BLOCKS_MOST + 1];
    uint32_t blocks = class_blocks(class);
    uint32_t at = (uint32_t)pattern_below(random, blocks);
    unsigned share = 1 + (unsigned)pattern_below(random, 4);
    unsigned count = 0;
    stack[0] = pattern_below(random, 2) == 0 ? NULL : &stranger;
    for (uint32_t i = 0; i < blocks; i++, at = (at + 5) % blocks) {
        if (!is_free[at] && pattern_below(random, share) == 0) {
            stack[++count] = address_of(slab, at);
            is_free[at] = true;
        }
    }
    if (count > 0) {
        unsigned given = give_stack(slab, &stack[count]);
        EXPECT(given == count, "class %u: %u of %u given", class, given, count);
    }
}

static void give_one(uint32_t slab, void *block) {
    void *stack[2] = {NULL, block};
    EXPECT(give_stack(slab, &stack[1]) == 1, "one block is not one");
}

static void run_class(unsigned class, uint64_t *random) {
    uint32_t slab = make(class, class % 3);
    size_t bytes = (size_t)class_slices[class] << SLICE_BITS;
    memset(arena_address(slab), FILLING, bytes);
    for (int round = 0; round < 400; round++) {
        if (pattern_below(random, 2) == 0) {
            size_t most = pattern_below(random, 8) == 0 ? BLOCKS_MOST : 130;
            check_taking(slab, class, (unsigned)pattern_below(random, most));
        } else {
            check_giving(slab, class, random);
        }
        check_slab(slab, class);
    }
    for (size_t at = 0; at < bytes; at++) {
        EXPECT(((char *)arena_address(slab))[at] == FILLING, "class %u: byte %zu of the blocks was written", class, at);
    }
    slab_unmake(slab);
    EXPECT(arena_span(slab)->state != SPAN_USED && street_tag(slab) == TAG_NONE, "the span was not given back");
}

static void open_arena(void) { EXPECT(arena_open(), "no reservation"); }

static void against_the_model(void) {
    uint64_t random = 3;
    open_arena();
    for (int round = 0; round < 3; round++) {
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            run_class(class, &random);
        }
    }
    street_check(true);
}

static void largest_heap_number(void) {
    open_arena();
    uint32_t slab = make(CLASS_COUNT - 1, TAG_HEAPS_MOST - 1);
    EXPECT(arena_span(slab)->heap == TAG_HEAPS_MOST - 1 && street_tag(slab) < TAG_HARD_LARGE, "tag %#x",
           street_tag(slab));
}

/* -- runs ------------------------------------------------------------------------------------------------------ */

/* Two slabs of a class, one right behind the other, and one flag for each of their blocks. */
static struct {
    uint32_t slab[2];
    uint32_t blocks; /* of each */
    bool is_free[2 * BLOCKS_MOST];
} pair;

static void make_pair(unsigned class) {
    for (int i = 0; i < 2; i++) {
        pair.slab[i] = slab_make(class, 0, false);
        EXPECT(pair.slab[i] != 0, "no memory");
    }
    EXPECT(pair.slab[1] == pair.slab[0] + class_slices[class], "class %u: the slabs are not neighbours", class);
    pair.blocks = class_blocks(class);
    memset(pair.is_free, true, sizeof pair.is_free);
}

static char *pair_address(uint32_t block) { return address_of(pair.slab[block / pair.blocks], block % pair.blocks); }

/* Puts some of the used blocks on the stack, in runs of neighbours that ascend or descend, in no order of the runs. Blocks
 * of both slabs may be neighbours. Returns how many; from the top, the order is that of `order`. */
static unsigned stack_runs(void **stack, uint32_t *order, uint64_t *random) {
    struct {
        uint32_t first, length;
    } runs[2 * BLOCKS_MOST];
    uint32_t count = 0;
    for (uint32_t at = 0; at < 2 * pair.blocks;) {
        uint32_t most = 1 + (uint32_t)pattern_below(random, pattern_below(random, 2) == 0 ? 3 : 200);
        uint32_t length = 0;
        while (length < most && at + length < 2 * pair.blocks && !pair.is_free[at + length]) {
            length++;
        }
        if (length > 0 && pattern_below(random, 3) > 0) {
            runs[count].first = at;
            runs[count++].length = length;
        }
        at += length > 0 ? length : 1;
    }
    unsigned stacked = 0;
    for (; count > 0; count--) {
        size_t chosen = pattern_below(random, count);
        bool up = pattern_below(random, 2) == 0;
        for (uint32_t i = 0; i < runs[chosen].length; i++) {
            order[stacked++] = runs[chosen].first + (up ? i : runs[chosen].length - 1 - i);
        }
        runs[chosen] = runs[count - 1];
    }
    stack[0] = NULL;
    for (unsigned i = 0; i < stacked; i++) {
        stack[stacked - i] = pair_address(order[i]);
    }
    return stacked;
}

static void check_pair(unsigned class, unsigned which) {
    memcpy(is_free, pair.is_free + which * pair.blocks, pair.blocks * sizeof *is_free);
    memset(is_free + pair.blocks, false, (BLOCKS_MOST - pair.blocks) * sizeof *is_free);
    check_slab(pair.slab[which], class);
}

/* Each call frees exactly the blocks up to the first of another slab, however they are run together. */
static void give_runs(unsigned class, uint64_t *random) {
    static void *stack[2 * BLOCKS_MOST + 1];
    static uint32_t order[2 * BLOCKS_MOST];
    unsigned left = stack_runs(stack, order, random);
    const uint32_t *next = order;
    while (left > 0) {
        uint32_t which = *next / pair.blocks;
        unsigned wanted = 0;
        while (wanted < left && next[wanted] / pair.blocks == which) {
            pair.is_free[next[wanted++]] = true;
        }
        EXPECT(slab_of(stack[left]) == pair.slab[which], "class %u: block %u has another slab", class, *next);
        unsigned given = give_stack(pair.slab[which], &stack[left]);
        EXPECT(given == wanted, "class %u: %u given instead of %u", class, given, wanted);
        left -= given;
        next += given;
        check_pair(class, 0);
        check_pair(class, 1);
    }
}

static void take_runs(unsigned class, uint64_t *random) {
    for (unsigned which = 0; which < 2; which++) {
        memcpy(is_free, pair.is_free + which * pair.blocks, pair.blocks * sizeof *is_free);
        memset(is_free + pair.blocks, false, (BLOCKS_MOST - pair.blocks) * sizeof *is_free);
        check_taking(pair.slab[which], class, 1 + (unsigned)pattern_below(random, pair.blocks));
        memcpy(pair.is_free + which * pair.blocks, is_free, pair.blocks * sizeof *is_free);
        check_pair(class, which);
    }
}

static void runs_of_neighbours(void) {
    uint64_t random = 11;
    open_arena();
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        make_pair(class);
        for (int round = 0; round < (SCENARIO_SANITIZED ? 4 : 12); round++) {
            take_runs(class, &random);
            give_runs(class, &random);
        }
    }
}

/* The bitmaps of slabs start in different places, and none reaches into the next one's. */
static void bitmaps_stay_in_their_slice(void) {
    open_arena();
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        unsigned places = 0;
        for (uint32_t slab = 64; slab < 72; slab++) {
            size_t bytes = (class_blocks(class) + 63) / 64 * sizeof(uint64_t);
            size_t from = slab_bitmap_offset(slab, slab_bitmap_step(class)) - (size_t)slab * BITMAP_BYTES;
            EXPECT(from + bytes <= BITMAP_BYTES, "class %u: bytes %zu to %zu of %d", class, from, from + bytes,
                   BITMAP_BYTES);
            places |= 1u << from / 64;
        }
        EXPECT(class_blocks(class) > 2048 || places != 1, "class %u: every bitmap starts in the same place", class);
    }
}

/* -- pages ----------------------------------------------------------------------------------------------------- */

enum { PAGES_MOST = 32 * SLICE_BYTES / 4096 };

static bool was_taken;               /* since the last look */
static bool was_clean[PAGES_MOST];   /* after the last look or taking */
static uint64_t content[BLOCKS_MOST]; /* what a used block is filled with */

static size_t slab_pages(uint32_t slab) { return ((size_t)arena_span(slab)->slices << SLICE_BITS) / os_page_bytes(); }

static bool reads_as_clean(uint32_t slab, size_t page) {
    size_t in_slice = SLICE_BYTES / os_page_bytes();
    return (arena_span(slab + (uint32_t)(page / in_slice))->clean >> (page % in_slice) & 1) != 0;
}

/* What lies behind the last block is nobody's. */
static void mark_used_pages(uint32_t slab, unsigned class, bool used[PAGES_MOST]) {
    memset(used, false, PAGES_MOST * sizeof *used);
    for (uint32_t b = 0; b < class_blocks(class); b++) {
        size_t from = (size_t)b * class_bytes[class] / os_page_bytes();
        size_t to = ((size_t)(b + 1) * class_bytes[class] - 1) / os_page_bytes();
        for (size_t p = from; !is_free[b] && p <= to; p++) {
            used[p] = true;
        }
    }
    EXPECT(slab_pages(slab) <= PAGES_MOST, "%zu pages", slab_pages(slab));
}

static void check_contents(uint32_t slab, unsigned class) {
    for (uint32_t b = 0; b < class_blocks(class); b++) {
        size_t wrong = is_free[b] ? SIZE_MAX : pattern_mismatch(address_of(slab, b), class_bytes[class], content[b]);
        EXPECT(wrong == SIZE_MAX, "class %u: byte %zu of block %u has changed", class, wrong, b);
    }
}

/* A page that is called clean is free of used blocks, is in no memory, and reads as zero; none is called so but by a
 * look. */
static void check_pages(uint32_t slab, unsigned class) {
    bool used[PAGES_MOST];
    unsigned char resident[PAGES_MOST];
    unsigned clean = 0;
    mark_used_pages(slab, class, used);
    EXPECT(mincore(arena_address(slab), (size_t)class_slices[class] << SLICE_BITS, resident) == 0, "mincore failed");
    for (size_t p = 0; p < slab_pages(slab); p++) {
        if (!reads_as_clean(slab, p)) {
            continue;
        }
        clean++;
        EXPECT(!used[p], "class %u: page %zu is called clean and holds a used block", class, p);
        EXPECT(was_clean[p], "class %u: page %zu is called clean without having been purged", class, p);
        EXPECT((resident[p] & 1) == 0, "class %u: page %zu is called clean and is resident", class, p);
    }
    EXPECT(arena_span(slab)->clean_pages == clean, "class %u: %u clean pages instead of %u", class,
           arena_span(slab)->clean_pages, clean);
}

/* Blocks that were free before and are not now have been taken. */
static void fill_taken(uint32_t slab, unsigned class, const bool *before, uint64_t *random) {
    for (uint32_t b = 0; b < class_blocks(class); b++) {
        if (before[b] && !is_free[b]) {
            content[b] = pattern_random(random);
            for (size_t p = (size_t)b * class_bytes[class] / os_page_bytes();
                 p <= ((size_t)(b + 1) * class_bytes[class] - 1) / os_page_bytes(); p++) {
                was_clean[p] = false;
                EXPECT(!reads_as_clean(slab, p), "class %u: block %u is taken, its page %zu is clean", class, b, p);
            }
            pattern_fill(address_of(slab, b), 0, class_bytes[class], content[b]);
            was_taken = true;
        }
    }
}

static void take_and_fill(uint32_t slab, unsigned class, unsigned want, uint64_t *random) {
    static bool before[BLOCKS_MOST];
    memcpy(before, is_free, sizeof before);
    check_taking(slab, class, want);
    fill_taken(slab, class, before, random);
}

static size_t clean_pages_under(uint32_t slab, unsigned class, uint32_t block) {
    size_t count = 0, page = os_page_bytes(), size = class_bytes[class];
    for (size_t p = block * size / page; p <= ((block + 1) * size - 1) / page; p++) {
        count += reads_as_clean(slab, p);
    }
    return count;
}

/* With room for so many pages under the limit: blocks on pages in memory come first, others as long as theirs have room, and just those are charged. */
static void take_at_limit(uint32_t slab, unsigned class, unsigned want, size_t room, uint64_t *random) {
    static bool before[BLOCKS_MOST], resident[BLOCKS_MOST];
    void *blocks[BLOCKS_MOST];
    for (uint32_t b = 0; b < class_blocks(class); b++) {
        before[b] = is_free[b];
        resident[b] = is_free[b] && clean_pages_under(slab, class, b) == 0;
    }
    size_t clean = arena_span(slab)->clean_pages, held = atomic_load(&limit_held_bytes), page = os_page_bytes();
    option_set(OPTION_LIMIT_MIB, 1024);
    atomic_store(&limit_held_bytes, limit_own() - room * page);
    unsigned taken = slab_take_charged(slab, blocks + BLOCKS_MOST, want);
    size_t left = (limit_own() - atomic_load(&limit_held_bytes)) / page, charged = room - left;
    option_set(OPTION_LIMIT_MIB, 0);
    atomic_store(&limit_held_bytes, held);
    EXPECT(taken <= want && charged == clean - arena_span(slab)->clean_pages,
           "class %u: %u of %u taken, %zu pages charged, %u of %zu are clean", class, taken, want, charged,
           arena_span(slab)->clean_pages, clean);
    for (unsigned i = 0; i < taken; i++) {
        size_t number =
            (size_t)((char *)blocks[BLOCKS_MOST - 1 - i] - (char *)arena_address(slab)) / class_bytes[class];
        EXPECT(is_free[number], "class %u: block %zu was not free", class, number);
        is_free[number] = false;
    }
    for (uint32_t b = 0; b < class_blocks(class); b++) {
        EXPECT(!is_free[b] || !resident[b] || (taken == want && charged == 0), "class %u: block %u is not taken", class,
               b);
        EXPECT(!is_free[b] || taken == want || clean_pages_under(slab, class, b) > left,
               "class %u: block %u has room in %zu pages", class, b, left);
    }
    was_taken |= taken > 0;
    fill_taken(slab, class, before, random);
    check_slab(slab, class);
}

/* All pieces of a slab, one after the other. */
static size_t clean(uint32_t slab, bool *busy) {
    struct slab_piece piece = {0};
    size_t bytes = 0;
    if (slab_begin_cleaning(slab, CLEAN_FOR_KEEPER, busy)) {
        while (slab_lift(slab, CLEAN_FOR_KEEPER, &piece)) {
            bytes += slab_put_back(slab, &piece, slab_purge(slab, &piece));
        }
    }
    return bytes;
}

static void look(uint32_t slab, unsigned class) {
    bool used[PAGES_MOST];
    uint32_t free_blocks = arena_span(slab)->free_blocks;
    size_t had = arena_span(slab)->clean_pages;
    bool busy = !was_taken;
    size_t bytes = clean(slab, &busy);
    EXPECT(busy == (was_taken && free_blocks > 0), "class %u: busy %d, taken %d, %u free", class, busy, was_taken,
           free_blocks);
    EXPECT(bytes == (arena_span(slab)->clean_pages - had) * os_page_bytes(),
           "class %u: %zu bytes for %u pages, %zu before", class, bytes, arena_span(slab)->clean_pages, had);
    EXPECT(!busy || bytes == 0, "class %u: %zu bytes of a busy slab", class, bytes);
    mark_used_pages(slab, class, used);
    for (size_t p = 0; p < slab_pages(slab); p++) {
        if (!busy && free_blocks > 0) {
            bool waste = p * os_page_bytes() >= (size_t)class_blocks(class) * class_bytes[class];
            /* What is behind the last block goes with it. */
            bool wanted = !used[p] && (!waste || is_free[class_blocks(class) - 1]);
            EXPECT(reads_as_clean(slab, p) || !wanted, "class %u: page %zu is free and not clean", class, p);
        }
        was_clean[p] = reads_as_clean(slab, p);
    }
    was_taken = false;
}

static uint32_t make_for_pages(unsigned class) {
    scenario_single_pages();
    uint32_t slab = make(class, 0);
    memset(was_clean, false, sizeof was_clean);
    was_taken = true; /* a slab that is made is about to be used */
    for (size_t p = 0; p < slab_pages(slab); p++) {
        EXPECT(!reads_as_clean(slab, p), "class %u: page %zu of a new slab is clean", class, p);
    }
    return slab;
}

/* Blocks go together, as after a phase of a program, or one here and one there. */
static void give_some(uint32_t slab, unsigned class, uint64_t *random) {
    uint32_t blocks = class_blocks(class);
    if (pattern_below(random, 2) == 0) {
        check_giving(slab, class, random);
        return;
    }
    uint32_t from = (uint32_t)pattern_below(random, blocks);
    uint32_t to = from + 1 + (uint32_t)pattern_below(random, blocks - from);
    for (uint32_t b = from; b < to; b++) {
        if (!is_free[b]) {
            give_one(slab, address_of(slab, b));
            is_free[b] = true;
        }
    }
}

static void cleans_what_is_free(void) {
    uint64_t random = 12;
    open_arena();
    for (int turn = 0; turn < 2; turn++) { /* the second time in slabs of memory that others have left dirty */
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            uint32_t slab = make_for_pages(class);
            uint32_t blocks = class_blocks(class);
            take_and_fill(slab, class, blocks, &random);
            for (int round = 0; round < (SCENARIO_SANITIZED ? 20 : 60); round++) {
                unsigned want = 1 + (unsigned)pattern_below(&random, bits_max(blocks / 8, 1));
                switch (pattern_below(&random, 5)) {
                case 0:
                    take_and_fill(slab, class, want, &random);
                    break;
                case 1:
                    take_at_limit(slab, class, want, pattern_below(&random, 5), &random);
                    break;
                case 2:
                    give_some(slab, class, &random);
                    break;
                default:
                    look(slab, class);
                }
                check_pages(slab, class);
                check_contents(slab, class);
            }
            look(slab, class);
            look(slab, class); /* two quiet looks, and everything free is clean: look() sees to that */
            bool busy;
            EXPECT(clean(slab, &busy) == 0 && !busy, "class %u: a third look finds more", class);
            check_pages(slab, class);
            slab_unmake(slab);
        }
    }
    street_check(true);
}

/* Blocks of every slab come out as zero where the slab says that they were never taken, whatever was purged since. */
static void fresh_blocks_are_zero(void) {
    uint64_t random = 13;
    open_arena();
    for (int turn = 0; turn < 2; turn++) {
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            uint32_t slab = make_for_pages(class);
            while (arena_span(slab)->free_blocks > 0) {
                uint32_t fresh = arena_span(slab)->fresh;
                void *block[1];
                struct zeros zeros = slab_next_zeros(slab);
                EXPECT(slab_take(slab, block + 1, 1) == 1, "no block");
                uint32_t number = (uint32_t)((char *)block[0] - (char *)arena_address(slab)) / class_bytes[class];
                bool zero = arena_span(slab)->fresh != fresh;
                EXPECT(zero == (class_bytes[class] >= CLASS_FRESH && number >= fresh),
                       "class %u: block %u, fresh from %u", class, number, fresh);
                EXPECT(!zero || (zeros.from == 0 && zeros.to == class_bytes[class]),
                       "class %u: block %u is not known to be zero", class, number);
                EXPECT(zeros.to <= class_bytes[class] &&
                           pattern_not_zero((char *)block[0] + zeros.from, zeros.to - zeros.from) == SIZE_MAX,
                       "class %u: block %u is not zero", class, number);
                memset(block[0], FILLING, class_bytes[class]);
                if (pattern_below(&random, 4) == 0) {
                    give_one(slab, block[0]);
                    if (pattern_below(&random, 2) == 0) {
                        bool busy;
                        (void)clean(slab, &busy);
                        (void)clean(slab, &busy);
                    }
                }
            }
            slab_unmake(slab);
            if (pattern_below(&random, 2) == 0) {
                (void)arena_purge_all();
            }
        }
    }
}

/* Of a block that is taken as much is known to be zero as it has of the first clean pages, and that is so; nothing else was. */
static void take_for_zeros(uint32_t slab, unsigned class, size_t *known, uint64_t *random) {
    size_t size = class_bytes[class], page = os_page_bytes();
    struct zeros zeros = slab_next_zeros(slab);
    uint32_t b = 0;
    while (!is_free[b]) {
        b++;
    }
    bool all = b >= arena_span(slab)->fresh;
    size_t wanted = all ? size : 0;
    for (size_t at = 0; !all && at < size; at++) { /* byte by byte */
        bool is_clean = reads_as_clean(slab, (b * size + at) / page);
        wanted += is_clean;
        if (!is_clean && wanted > 0) {
            break;
        }
    }
    EXPECT(zeros.to - zeros.from == (size < CLASS_FRESH ? 0 : wanted), "class %u: bytes %u to %u of block %u, %zu",
           class, zeros.from, zeros.to, b, wanted);
    EXPECT(zeros.from <= zeros.to && zeros.to <= size, "class %u: bytes %u to %u of a block", class, zeros.from,
           zeros.to);
    size_t wrong = pattern_not_zero(address_of(slab, b) + zeros.from, zeros.to - zeros.from);
    EXPECT(wrong == SIZE_MAX, "class %u: byte %zu behind %u of block %u is not zero", class, wrong, zeros.from, b);
    *known += zeros.to - zeros.from;
    take_and_fill(slab, class, 1, random);
}

/* Blocks that were written, given, and whose pages have gone back come out with what is known to be zero of them. */
static void purged_blocks_are_known_to_be_zero(void) {
    uint64_t random = 17;
    size_t known = 0;
    open_arena();
    for (int turn = 0; turn < 2; turn++) {
        for (unsigned class = class_of(CLASS_FRESH) - 1; class < CLASS_COUNT; class++) {
            uint32_t slab = make_for_pages(class);
            take_and_fill(slab, class, 1 + (unsigned)pattern_below(&random, class_blocks(class)), &random);
            for (int round = 0; round < (SCENARIO_SANITIZED ? 20 : 80); round++) {
                uint64_t what = pattern_below(&random, 4);
                if (what == 0) {
                    give_some(slab, class, &random);
                } else if (what == 1) {
                    look(slab, class);
                } else if (arena_span(slab)->free_blocks > 0) {
                    take_for_zeros(slab, class, &known, &random);
                }
                check_pages(slab, class);
                check_contents(slab, class);
            }
            slab_unmake(slab);
        }
    }
    EXPECT(known > 1 << 20, "%zu bytes were known to be zero", known);
}

/* -- what the arena goes on knowing -------------------------------------------------------------------------------- */

enum { TENANTS = 24, SLICES_MOST = 40 };

struct tenant {
    uint32_t slice; /* 0: none */
    bool is_slab;
};

/* All blocks of a slab are written and some given, so that their pages go back; then the others, and with them the slab. */
static void live_and_go(uint32_t slab, unsigned class, uint64_t *random) {
    bool busy;
    take_and_fill(slab, class, class_blocks(class), random);
    memset(arena_address(slab), FILLING, (size_t)class_slices[class] << SLICE_BITS);
    for (uint64_t turns = pattern_below(random, 3); turns > 0; turns--) {
        give_some(slab, class, random);
        (void)clean(slab, &busy);
        (void)clean(slab, &busy);
    }
    for (uint32_t b = 0; b < class_blocks(class); b++) {
        if (!is_free[b]) {
            give_one(slab, address_of(slab, b));
        }
    }
    if (pattern_below(random, 4) == 0) { /* all of it is clean */
        (void)clean(slab, &busy);
        (void)clean(slab, &busy);
    }
}

static void move_in(struct tenant *tenant, uint64_t *random) {
    bool zero;
    tenant->is_slab = pattern_below(random, 4) != 0;
    if (tenant->is_slab) {
        unsigned class = (unsigned)pattern_below(random, CLASS_COUNT);
        tenant->slice = make_for_pages(class);
        live_and_go(tenant->slice, class, random);
        return;
    }
    uint32_t slices = 1 + (uint32_t)pattern_below(random, SLICES_MOST);
    tenant->slice = arena_take(slices, (uint32_t)1 << pattern_below(random, 3), ARENA_NO_USE, &zero);
    EXPECT(tenant->slice != 0, "no memory");
    size_t bytes = (size_t)slices << SLICE_BITS;
    if (pattern_below(random, 4) == 0 && arena_extend(tenant->slice, slices + 3)) {
        memset((char *)arena_address(tenant->slice) + bytes, FILLING, 3 << SLICE_BITS);
    }
    EXPECT(!zero || pattern_not_zero(arena_address(tenant->slice), bytes) == SIZE_MAX, "span %u is not zero",
           tenant->slice);
    memset(arena_address(tenant->slice), FILLING, bytes);
}

static size_t resident_bytes(uint32_t slice, uint32_t slices) {
    static unsigned char resident[PAGES_MOST];
    size_t bytes = 0, page = os_page_bytes();
    while (slices > 0) {
        uint32_t some = (uint32_t)bits_min(slices, 32);
        EXPECT(mincore(arena_address(slice), (size_t)some << SLICE_BITS, resident) == 0, "mincore failed");
        for (size_t p = 0; p < ((size_t)some << SLICE_BITS) / page; p++) {
            bytes += (resident[p] & 1) != 0 ? page : 0;
        }
        slice += some;
        slices -= some;
    }
    return bytes;
}

/* What free spans are said to have in memory is what they have: every page here was written. */
static void check_what_is_kept(void) {
    struct arena_figures figures;
    size_t resident = 0;
    arena_figures(&figures);
    for (uint32_t slice = street_start(); slice < street_end(); slice += arena_span(slice)->slices) {
        resident += street_is_free(slice) ? resident_bytes(slice, arena_span(slice)->slices) : 0;
    }
    EXPECT(SCENARIO_SANITIZED || resident <= figures.dirty, "%zu bytes are resident, %zu counted", resident,
           figures.dirty);
    /* Around a span that was asked for by alignment the arena forgets; what is left over in a slab may not have been written again. */
    EXPECT(resident + figures.dirty / 4 + SLICE_BYTES >= figures.dirty, "%zu bytes are resident, %zu counted", resident,
           figures.dirty);
}

/* Slabs that empty with purged pages in them, and spans of other kinds, are joined and split: the arena counts in none what the
 * kernel has already, hands out nothing as zero that is not, and gives back what it says. */
static void emptied_slabs_stay_clean(void) {
    uint64_t random = 16;
    scenario_single_pages();
    struct tenant tenants[TENANTS] = {{0, false}};
    open_arena();
    for (int round = 0; round < (SCENARIO_SANITIZED ? 300 : 1500); round++) {
        struct tenant *tenant = &tenants[pattern_below(&random, TENANTS)];
        if (tenant->slice == 0) {
            move_in(tenant, &random);
        } else {
            if (tenant->is_slab) {
                slab_unmake(tenant->slice);
            } else {
                EXPECT(arena_give(tenant->slice), "span %u is not a used one", tenant->slice);
            }
            tenant->slice = 0;
        }
        if (pattern_below(&random, 40) == 0) {
            struct arena_figures figures, after;
            arena_figures(&figures);
            size_t bytes = figures.dirty; /* what is purged some at a time is as much as all at once */
            size_t purged = pattern_below(&random, 2) == 0 ? arena_purge_all() : 0;
            bool all = purged != 0;
            if (!all) {
                (void)arena_purge_some(&purged);
            }
            arena_figures(&after);
            EXPECT(bytes == after.dirty + purged && after.purged == figures.purged + purged,
                   "of %zu bytes %zu were purged, %zu are left", bytes, purged, after.dirty);
            EXPECT(!all || after.dirty == 0, "all was purged, and %zu bytes are left", after.dirty);
        }
        street_check(true);
        if (round % 10 == 0) {
            check_what_is_kept();
        }
    }
}

/* Blocks of the slab but the first and `kept` are given. */
static void give_all_but(uint32_t slab, unsigned class, uint32_t kept) {
    for (uint32_t b = 1; b < class_blocks(class); b++) {
        if (!is_free[b] && b != kept) {
            give_one(slab, address_of(slab, b));
            is_free[b] = true;
        }
    }
}

/* A folio that came in for one page has brought clean ones in with it: they go when that page goes, and are not counted again. */
static void what_a_folio_brought_in_goes_too(void) {
    enum { CLASS = 8 }; /* 160 bytes */
    uint64_t random = 15;
    size_t page = os_page_bytes();
    open_arena();
    uint32_t slab = make_for_pages(CLASS);
    for (size_t kept = 1; kept < slab_pages(slab); kept++) {
        take_and_fill(slab, CLASS, class_blocks(CLASS), &random);
        give_all_but(slab, CLASS, (uint32_t)((kept * page + page / 2) / class_bytes[CLASS]));
        look(slab, CLASS);
        look(slab, CLASS);
        for (size_t p = 1; p < slab_pages(slab); p++) { /* as the kernel does, but for the page that is there */
            if (p != kept) {
                ((volatile char *)arena_address(slab))[p * page] = 0;
            }
        }
        give_all_but(slab, CLASS, 0);
        look(slab, CLASS);
        check_pages(slab, CLASS);
        check_contents(slab, CLASS);
    }
}

/* Locked pages stay as they are, are not called clean and are not asked for again until something has changed. */
static void locked_pages_stay(void) {
    enum { CLASS = 8 }; /* 160 bytes */
    uint64_t random = 14;
    open_arena();
    uint32_t slab = make_for_pages(CLASS);
    if (SCENARIO_SANITIZED || mlock(arena_address(slab), SLICE_BYTES) != 0) {
        return; /* no memory may be locked here; a sanitizer only says that it did */
    }
    take_and_fill(slab, CLASS, class_blocks(CLASS), &random);
    for (uint32_t b = 1; b < class_blocks(CLASS); b++) {
        give_one(slab, address_of(slab, b));
        is_free[b] = true;
    }
    bool busy;
    EXPECT(clean(slab, &busy) == 0 && busy, "a look at a busy slab");
    was_taken = false;
    EXPECT(clean(slab, &busy) == 0 && !busy, "a locked page was purged");
    check_pages(slab, CLASS);
    check_contents(slab, CLASS);
    EXPECT(munlock(arena_address(slab), SLICE_BYTES) == 0, "it stays locked");
    give_one(slab, address_of(slab, 0));
    is_free[0] = true;
    look(slab, CLASS);
    check_pages(slab, CLASS);
    EXPECT(arena_span(slab)->clean_pages == slab_pages(slab), "%u pages are clean", arena_span(slab)->clean_pages);
}

/* -- misuse ---------------------------------------------------------------------------------------------------- */

struct misuse {
    uint32_t slab;
    void *block; /* or the top of a stack of them */
};

static void give(const void *argument) {
    const struct misuse *misuse = argument;
    give_one(misuse->slab, misuse->block);
}

static void give_run(const void *argument) {
    const struct misuse *misuse = argument;
    (void)give_stack(misuse->slab, misuse->block);
}

static void expect_stop(uint32_t slab, void *block, const char *name) {
    char line[256];
    const struct misuse misuse = {slab, block};
    snprintf(line, sizeof line, "%s: pointer %p, size class %u bytes", name, block,
             class_bytes[arena_span(slab)->size_class]);
    scenario_stops(give, &misuse, line);
}

static void stops_at_double_frees(void) {
    open_arena();
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        uint32_t slab = make(class, 0);
        expect_stop(slab, address_of(slab, 0), "double free"); /* never handed out: free as well */
        check_taking(slab, class, class_blocks(class));
        uint32_t last = class_blocks(class) - 1;
        give_one(slab, address_of(slab, last));
        expect_stop(slab, address_of(slab, last), "double free");
    }
}

/* Also when the second of the pair comes in the same run. */
static void stops_at_a_pair_in_a_run(void) {
    open_arena();
    uint32_t slab = make(0, 0);
    void *stack[4] = {NULL, address_of(slab, 7), address_of(slab, 3), address_of(slab, 7)};
    char line[256];
    check_taking(slab, 0, 64);
    snprintf(line, sizeof line, "double free: pointer %p, size class 16 bytes", stack[1]);
    const struct misuse misuse = {slab, &stack[3]};
    scenario_stops(give_run, &misuse, line);
}

static void expect_stop_in_run(uint32_t slab, void **top, const void *at_fault, const char *name) {
    char line[256];
    const struct misuse misuse = {slab, top};
    snprintf(line, sizeof line, "%s: pointer %p, size class %u bytes", name, at_fault,
             class_bytes[arena_span(slab)->size_class]);
    scenario_stops(give_run, &misuse, line);
}

/* In a run of neighbours, up or down, over the border of two words or not: it is the first block at fault that is named,
 * and not the one the run starts with. */
static void names_the_block_in_a_run(void) {
    enum { LENGTH = 6 };
    uint64_t random = 15;
    open_arena();
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        uint32_t slab = make(class, 0);
        uint32_t blocks = class_blocks(class);
        check_taking(slab, class, blocks);
        if (blocks < LENGTH) {
            continue;
        }
        for (int turn = 0; turn < 4; turn++) {
            uint32_t first = blocks > 70 && turn % 2 == 0 ? 61 : (uint32_t)pattern_below(&random, blocks - LENGTH + 1);
            bool up = turn / 2 == 0;
            uint32_t at_fault = (uint32_t)pattern_below(&random, LENGTH);
            void *stack[LENGTH + 1] = {NULL};
            for (uint32_t i = 0; i < LENGTH; i++) {
                stack[LENGTH - i] = address_of(slab, up ? first + i : first + LENGTH - 1 - i);
            }
            void **top = &stack[LENGTH];
            void *bad = stack[LENGTH - at_fault];
            void *worse = stack[1]; /* comes later: not the one to be named */
            give_one(slab, bad);
            if (worse != bad) {
                give_one(slab, worse);
            }
            expect_stop_in_run(slab, top, bad, "double free");
            void *again[1];
            unsigned twice = worse != bad ? 2 : 1;
            for (unsigned i = 0; i < twice; i++) {
                EXPECT(slab_take(slab, again + 1, 1) == 1, "no block");
            }
            stack[LENGTH - at_fault] = (char *)bad + class_bytes[class] / 2;
            expect_stop_in_run(slab, top, stack[LENGTH - at_fault], "interior pointer");
        }
        void *beyond[4] = {NULL, address_of(slab, blocks), address_of(slab, blocks - 1), address_of(slab, blocks - 2)};
        if ((char *)beyond[1] < (char *)arena_address(slab + class_slices[class])) { /* the run goes on into the rest */
            expect_stop_in_run(slab, &beyond[3], beyond[1], "interior pointer");
        }
    }
}

static void stops_at_interior_pointers(void) {
    uint64_t random = 4;
    open_arena();
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        uint32_t slab = make(class, 0);
        uint32_t size = class_bytes[class];
        uint32_t last = class_blocks(class) - 1;
        check_taking(slab, class, class_blocks(class));
        expect_stop(slab, address_of(slab, 0) + 1, "interior pointer");
        expect_stop(slab, address_of(slab, last) + size - 1, "interior pointer");
        uint32_t some = (uint32_t)pattern_below(&random, last + 1);
        expect_stop(slab, address_of(slab, some) + 1 + pattern_below(&random, size - 1), "interior pointer");
        char *waste = address_of(slab, last + 1); /* behind the last block, where a slab has a rest */
        if (waste < (char *)arena_address(slab + class_slices[class])) {
            expect_stop(slab, waste, "interior pointer");
        }
    }
}

static const struct scenario scenarios[] = {
    {"against_the_model", against_the_model},
    {"largest_heap_number", largest_heap_number},
    {"runs_of_neighbours", runs_of_neighbours},
    {"bitmaps_stay_in_their_slice", bitmaps_stay_in_their_slice},
    {"cleans_what_is_free", cleans_what_is_free},
    {"fresh_blocks_are_zero", fresh_blocks_are_zero},
    {"purged_blocks_are_known_to_be_zero", purged_blocks_are_known_to_be_zero},
    {"emptied_slabs_stay_clean", emptied_slabs_stay_clean},
    {"what_a_folio_brought_in_goes_too", what_a_folio_brought_in_goes_too},
    {"locked_pages_stay", locked_pages_stay},
    {"stops_at_double_frees", stops_at_double_frees},
    {"stops_at_a_pair_in_a_run", stops_at_a_pair_in_a_run},
    {"names_the_block_in_a_run", names_the_block_in_a_run},
    {"stops_at_interior_pointers", stops_at_interior_pointers},
};

SCENARIO_MAIN(scenarios)
