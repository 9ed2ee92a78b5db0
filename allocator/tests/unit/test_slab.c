/* Slabs against a model of one flag a block: what is free, in which order it is handed out, what stops the program. */
#include "slab.h"

#include <sys/mman.h>

#include "pattern.h"
#include "scenario.h"
#include "street.h"

enum { BLOCKS_MOST = 4096, FILLING = 0x5a };

static bool is_free[BLOCKS_MOST]; /* the model */

static char *address_of(uint32_t slab, uint32_t block) {
    return (char *)arena_address(slab) + (size_t)block * class_bytes[arena_span(slab)->size_class];
}

static void check_slab(uint32_t slab, unsigned class) {
    const struct span *span = arena_span(slab);
    const uint64_t *bitmap = arena_bitmap(slab);
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
    uint32_t slab = slab_make(class, heap);
    EXPECT(slab != 0, "no memory");
    for (uint32_t i = 0; i < BLOCKS_MOST; i++) {
        is_free[i] = i < class_blocks(class);
    }
    for (uint32_t i = 0; i < class_slices[class]; i++) {
        EXPECT(street_tag(slab + i) == ((heap + 1) << TAG_HEAP_SHIFT | class), "slice %u: tag %#x", i,
               street_tag(slab + i));
        EXPECT(slab_of((char *)arena_address(slab + i) + SLICE_BYTES - 1) == slab, "slice %u names another slab", i);
    }
    check_slab(slab, class);
    return slab;
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
        unsigned given = slab_give(slab, &stack[count]);
        EXPECT(given == count, "class %u: %u of %u given", class, given, count);
    }
}

static void give_one(uint32_t slab, void *block) {
    void *stack[2] = {NULL, block};
    EXPECT(slab_give(slab, &stack[1]) == 1, "one block is not one");
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
    EXPECT(arena_span(slab)->heap == TAG_HEAPS_MOST - 1 && street_tag(slab) < TAG_LARGE, "tag %#x", street_tag(slab));
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
    (void)slab_give(misuse->slab, misuse->block);
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
    {"stops_at_double_frees", stops_at_double_frees},
    {"stops_at_a_pair_in_a_run", stops_at_a_pair_in_a_run},
    {"stops_at_interior_pointers", stops_at_interior_pointers},
};

SCENARIO_MAIN(scenarios)
