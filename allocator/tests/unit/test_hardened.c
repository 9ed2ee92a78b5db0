/* The hardened heap by itself: what nobody can guess, how long freed slots are held back, and what two threads at the same instant, or a trailer
 * that was copied, would pass by. */
#include "hardened.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "hard_inside.h"
#include "options.h"
#include "os.h"
#include "scenario.h"

enum {
    SIZE = 40, /* in slots of 48 bytes */
    SLOT = 48,
    HELD = 128, /* places of the row, and of the ring behind it, where they hold as much as they may */
};

static void open_heap(void) {
    option_set(OPTION_GUARD_SMALL, 0); /* all blocks lie in slabs */
    EXPECT(arena_open(), "no address space");
    hardened_open();
}

static unsigned char *take_of(size_t size, enum made made) {
    unsigned char *block = hardened_take(NULL, 0, size, 1, made);
    EXPECT(block != NULL, "no memory");
    return block;
}

static unsigned char *take(void) { return take_of(SIZE, MADE_BY_MALLOC); }

static void give(void *block) {
    enum hard_given given = hardened_give_ahead(NULL, block, MADE_BY_MALLOC, SIZE_UNTOLD, true);
    EXPECT(given == HARD_CLEARED, "%d", (int)given);
    hardened_give_cleared(NULL, 0, block);
}

/* -- what nobody can guess ------------------------------------------------------------------------------------ */

/* The end of a string, written one byte too far, is a zero: it changes the first byte behind the block, which is the canary's or the trailer's.
 * A string that is read on ends with the second. */
static void first_byte_behind_a_block_is_not_zero_and_the_second_is(void) {
    open_heap();
    for (unsigned i = 0; i < 2000; i++) {
        size_t size = SIZE - i % 16;
        const unsigned char *block = take_of(size, MADE_BY_MALLOC);
        unsigned zero = (size + 1 + TRAILER_BYTES) % 16 == 0 ? 2 : 1; /* the trailer's own */
        for (unsigned at = 0; at < zero; at++) {
            EXPECT(block[size + at] >= 0x80 && block[size + at] != 0xFF, "byte %u behind %zu is 0x%02x", at, size,
                   block[size + at]);
        }
        EXPECT(block[size + zero] == 0, "byte %u behind %zu is 0x%02x", zero, size, block[size + zero]);
    }
}

/* Which takes a key for each block of a kind: of neighbours nothing is alike but by chance. */
static void no_block_tells_the_canary_of_another(void) {
    enum { BLOCKS = 200, BEHIND = 8 };
    static const unsigned char *blocks[BLOCKS];
    unsigned alike = 0;
    open_heap();
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = take_of(SIZE - BEHIND, MADE_BY_MALLOC);
        for (unsigned j = 0; j < i; j++) {
            alike += memcmp(blocks[i] + SIZE - BEHIND, blocks[j] + SIZE - BEHIND, BEHIND) == 0;
        }
    }
    EXPECT(alike < 10, "%u pairs of %u blocks have the same canary", alike, BLOCKS);
}

static void block_of_a_parent_is_still_known(void) {
    enum { FORKS = 20 };
    static void *blocks[FORKS];
    open_heap();
    for (unsigned i = 0; i < FORKS; i++) {
        blocks[i] = take();
        struct random_key before = hard_secret.keys[hard_secret.generation];
        hardened_after_fork(NULL, i % 2 == 0);
        EXPECT(i >= HARD_GENERATIONS - 1 ||
                   memcmp(&before, &hard_secret.keys[hard_secret.generation], sizeof before) != 0,
               "child %u has its parent's key", i);
    }
    for (unsigned i = 0; i < FORKS; i++) {
        give(blocks[i]);
    }
}

/* Successive blocks that lie in slots one behind the other, and those that lie higher than the one before. */
static void successive(unsigned count, unsigned *next, unsigned *higher) {
    *next = *higher = 0;
    const unsigned char *before = take();
    for (unsigned i = 1; i < count; i++) {
        const unsigned char *block = take();
        *next += block == before + SLOT;
        *higher += block > before;
        before = block;
    }
}

static void slots_are_taken_at_random(void) {
    open_heap();
    unsigned next, higher;
    successive(401, &next, &higher);
    EXPECT(next < 100, "%u of 400 blocks follow the one before", next);
    EXPECT(higher > 140 && higher < 260, "%u of 400 blocks lie higher than the one before", higher);
}

/* Of slabs with many slots, and of slabs with few: some pages of each at a time. */
static void slots_are_taken_from_anywhere_in_the_slab(void) {
    enum { PAGES = 2, PAGE = 4096 };
    unsigned first = 0, slabs = 0;
    open_heap();
    for (unsigned class = class_of(HARD_LEAST); class < class_of(1024); class++) {
        for (unsigned shard = 0; shard < HARD_SHARDS; shard++, slabs++) {
            const char *block = hardened_take(NULL, shard, class_bytes[class] - TRAILER_BYTES, 1, MADE_BY_MALLOC);
            EXPECT(block != NULL, "no memory");
            first += (size_t)(block - (const char *)arena_address(hard_slab_of(block))) < (size_t)PAGES * PAGE;
        }
    }
    EXPECT(first < slabs / 2, "the first block of %u of %u slabs lies in its first pages", first, slabs);
    first = slabs = 0;
    for (unsigned class = class_of(1024); class < class_of(8192); class++) { /* 60 to 20 slots */
        for (unsigned shard = 0; shard < HARD_SHARDS; shard++, slabs++) {
            const void *block = hardened_take(NULL, shard, class_bytes[class] - TRAILER_BYTES, 1, MADE_BY_MALLOC);
            EXPECT(block != NULL, "no memory");
            first += hard_slab_slot(hard_slab_of(block), block) == 0;
        }
    }
    EXPECT(first < slabs / 4, "the first slot was taken first in %u of %u slabs", first, slabs);
}

static void slots_are_taken_in_order_if_asked(void) {
    open_heap();
    option_set(OPTION_RANDOM, 0);
    unsigned next, higher;
    successive(401, &next, &higher);
    EXPECT(next == 400, "%u of 400 blocks follow the one before", next);
}

/* -- what is held back ------------------------------------------------------------------------------------------ */

/* For each of `count` blocks that are taken and freed one by one, how many frees it takes until its slot is free in the slab again. */
static void count_frees(unsigned count, unsigned *frees, unsigned most) {
    static unsigned char *freed[8192];
    unsigned done = 0;
    for (unsigned i = 0; done < count; i++) {
        EXPECT(i < sizeof freed / sizeof *freed, "%u of %u blocks came back", done, count);
        freed[i] = take();
        give(freed[i]);
        for (unsigned j = 0; j <= i; j++) {
            uint32_t slab = freed[j] != NULL ? hard_slab_of(freed[j]) : 0;
            if (slab != 0 && hard_slab_is_free(slab, hard_slab_slot(slab, freed[j]))) {
                EXPECT(i - j <= most, "block %u came back after %u frees", j, i - j);
                freed[j] = NULL;
                frees[done++] = i - j;
            }
        }
    }
}

/* A newcomer stays in the row until another displaces it, each with one chance in as many as it has places, and then passes the whole ring. */
static void freed_slots_are_held_back_for_long(void) {
    enum { COUNT = 300, MOST = HELD + 40 * HELD };
    unsigned frees[COUNT], sum = 0;
    bool seen[MOST + 1] = {false};
    unsigned different = 0;
    open_heap();
    count_frees(COUNT, frees, MOST);
    for (unsigned i = 0; i < COUNT; i++) {
        EXPECT(frees[i] > HELD, "block %u came back after %u frees", i, frees[i]);
        sum += frees[i];
        different += !seen[frees[i]];
        seen[frees[i]] = true;
    }
    EXPECT(sum / COUNT > HELD + HELD / 2 && sum / COUNT < 4 * HELD, "they came back after %u frees on average",
           sum / COUNT);
    EXPECT(different > COUNT / 5, "there were %u different numbers of frees", different);
}

/* Fewer places, and fewer frees. */
static void what_is_held_back_is_as_large_as_asked(void) {
    enum { COUNT = 300, PLACES = 1024 / SLOT, MOST = PLACES + 60 * PLACES };
    unsigned frees[COUNT];
    open_heap();
    option_set(OPTION_QUARANTINE_KIB, 1);
    count_frees(COUNT, frees, MOST);
    for (unsigned i = 0; i < COUNT; i++) {
        EXPECT(frees[i] > PLACES, "block %u came back after %u frees", i, frees[i]);
    }
}

static void nothing_is_held_back_if_asked(void) {
    unsigned frees[10];
    open_heap();
    option_set(OPTION_QUARANTINE_KIB, 0);
    count_frees(10, frees, 0);
}

/* -- what is found ---------------------------------------------------------------------------------------------- */

static void free_it(const void *block) { give((void *)(uintptr_t)block); }

/* As large, as made, in the same slab: only the address is another. */
static void trailer_of_another_block_is_found(void) {
    open_heap();
    for (unsigned i = 0; i < 50; i++) {
        unsigned char *one = take(), *other = take();
        memcpy(other + SIZE, one + SIZE, TRAILER_BYTES);
        char line[128];
        snprintf(line, sizeof line, "overflow: pointer %p, size class 48 bytes, its end overwritten", (void *)other);
        scenario_stops(free_it, other, line);
    }
}

/* Of a slot whose class leaves more than a hundred bytes behind the block: whoever writes at an offset skips the first of them. */
static void write_far_behind_the_end_is_found(void) {
    enum { LONG = 1100, BEHIND = 40 };
    open_heap();
    unsigned char *block = take_of(LONG, MADE_BY_MALLOC);
    EXPECT(arena_span(hard_slab_of(block))->size_class == class_of(1280), "another class");
    for (unsigned at = 1; at <= 57; at += 8) { /* 64 bytes, rounded down to words */
        block[LONG + at - 1] ^= 1;
        char line[128];
        snprintf(line, sizeof line, "overflow: pointer %p, size 1100 bytes, %u byte%s behind its end overwritten",
                 (void *)block, at, at == 1 ? "" : "s");
        scenario_stops(free_it, block, line);
        block[LONG + at - 1] ^= 1;
    }
    give(block);
}

static void resize_it(const void *block) { (void)hardened_resize((void *)(uintptr_t)block, SIZE); }

/* realloc takes what malloc made: also where the block can stay. */
static void kind_is_checked_where_a_block_grows_in_place(void) {
    open_heap();
    void *block = take_of(SIZE - 7, MADE_BY_NEW);
    char line[128];
    snprintf(line, sizeof line, "mismatch: pointer %p, made by new, freed by free (kinds=0 leaves this check out)",
             block);
    scenario_stops(resize_it, block, line);
    block = take_of(SIZE - 7, MADE_BY_MALLOC);
    EXPECT(hardened_resize(block, SIZE), "it has to move");
}

/* Both have found the trailer and cleared the slot: the second comes back to the shard as if it had been in use. */
static void give_twice(const void *block) {
    void *slot = (void *)(uintptr_t)block;
    hard_shard_give(0, class_of(SLOT), &slot, 1);
    hard_shard_give(1, class_of(SLOT), &slot, 1);
    hardened_reclaim();
}

static void free_by_two_threads_at_once_is_found(void) {
    open_heap();
    void *block = take();
    (void)hardened_give_ahead(NULL, block, MADE_BY_MALLOC, SIZE_UNTOLD, true);
    char line[128];
    snprintf(line, sizeof line, "double free: pointer %p, size class 48 bytes", block);
    scenario_stops(give_twice, block, line);
    option_set(OPTION_QUARANTINE_KIB, 0);
    scenario_stops(give_twice, block, line);
}

/* -- small blocks with pages of their own ---------------------------------------------------------------------- */

static bool has_pages(const void *block) {
    uint32_t tag;
    EXPECT(tag_of(block, &tag), "%p is nobody's", block);
    return tag == TAG_HARD_LARGE;
}

static void first_small_blocks_have_pages_and_few_have_at_a_time(void) {
    enum { FIRST = 16, MANY = 4000, BYTES_MOST = 1 << 20 };
    static void *blocks[MANY];
    EXPECT(arena_open(), "no address space");
    hardened_open();
    for (unsigned round = 0; round < 2; round++) {
        size_t bytes = 0;
        for (unsigned i = 0; i < MANY; i++) {
            if (i % 4 == 0) { /* as if there had been a rest */
                hard_share_open();
            }
            blocks[i] = take();
            EXPECT(has_pages(blocks[i]) || i >= FIRST, "block %u lies in a slab", i);
            bytes += has_pages(blocks[i]) ? os_page_bytes() : 0;
        }
        EXPECT(bytes <= BYTES_MOST && bytes > BYTES_MOST / 2, "small blocks have %zu bytes of pages", bytes);
        for (unsigned i = 0; i < MANY; i++) {
            if (has_pages(blocks[i])) {
                hardened_give_large(blocks[i], MADE_BY_MALLOC, SIZE_UNTOLD);
            } else {
                give(blocks[i]);
            }
        }
    }
}

static void shrunk_block_gives_its_pages_up(void) {
    enum { PAGES = 7, ROUNDS = 400 };
    size_t page = os_page_bytes();
    EXPECT(arena_open(), "no address space");
    hardened_open();
    for (unsigned i = 0; i < ROUNDS; i++) {
        hard_share_open();
        void *block = take_of(bits_min(PAGES * page, HARD_SLOT_MOST - TRAILER_BYTES), MADE_BY_MALLOC);
        EXPECT(has_pages(block), "block %u lies in a slab", i);
        hardened_shrink(block, 1);
        hardened_give_large(block, MADE_BY_MALLOC, SIZE_UNTOLD);
    }
}

static void child_of_a_fork_takes_none_at_first(void) {
    EXPECT(arena_open(), "no address space");
    hardened_open();
    EXPECT(has_pages(take()), "the first block lies in a slab");
    hardened_after_fork(NULL, true);
    EXPECT(!has_pages(take()), "the child's first has pages of its own");
}

/* A child that clears memory of its parent copies all of it first. */
static void slab_of_a_child_has_fresh_pages(void) {
    enum { PAGES = 14 };
    open_heap();
    unsigned class = class_of(64);
    unsigned char resident[PAGES];
    uint32_t slab = hard_slab_make(class, 0);
    EXPECT(slab != 0 && hard_slab_guard(class) >= PAGES * (size_t)4096, "no slab");
    memset(arena_address(slab), 0, PAGES * (size_t)4096);
    hard_slab_unmake(slab);
    hardened_after_fork(NULL, true);
    EXPECT(hard_slab_make(class, 0) == slab, "another slab");
    EXPECT(mincore(arena_address(slab), sizeof resident * 4096, resident) == 0, "mincore failed");
    for (unsigned page = 0; page * os_page_bytes() < PAGES * (size_t)4096; page++) {
        EXPECT((resident[page] & 1) == 0, "page %u of a new slab is in memory", page);
    }
}

static bool is_alone(void) { return true; }

static void slot_on_its_way_is_not_taken_for_changed(void) {
    enum { BUSY = 0xF1 }; /* each byte of its trailer, as a handler may find it that has interrupted its thread */
    open_heap();
    struct hard_cache *cache = hardened_cache();
    EXPECT(cache != NULL, "no memory");
    unsigned char *block = hardened_take(cache, 0, SIZE, 1, MADE_BY_MALLOC);
    EXPECT(block != NULL, "no memory");
    enum hard_given given = hardened_give_ahead(cache, block, MADE_BY_MALLOC, SIZE_UNTOLD, false);
    EXPECT(given == HARD_GIVEN, "%d", (int)given);
    memset(block + SLOT - TRAILER_BYTES, BUSY, TRAILER_BYTES);
    (void)hardened_check(cache, NULL, is_alone);
}

static const struct scenario scenarios[] = {
    {"slot_on_its_way_is_not_taken_for_changed", slot_on_its_way_is_not_taken_for_changed},
    {"slab_of_a_child_has_fresh_pages", slab_of_a_child_has_fresh_pages},
    {"first_small_blocks_have_pages_and_few_have_at_a_time", first_small_blocks_have_pages_and_few_have_at_a_time},
    {"shrunk_block_gives_its_pages_up", shrunk_block_gives_its_pages_up},
    {"child_of_a_fork_takes_none_at_first", child_of_a_fork_takes_none_at_first},
    {"first_byte_behind_a_block_is_not_zero_and_the_second_is",
     first_byte_behind_a_block_is_not_zero_and_the_second_is},
    {"no_block_tells_the_canary_of_another", no_block_tells_the_canary_of_another},
    {"block_of_a_parent_is_still_known", block_of_a_parent_is_still_known},
    {"slots_are_taken_at_random", slots_are_taken_at_random},
    {"slots_are_taken_from_anywhere_in_the_slab", slots_are_taken_from_anywhere_in_the_slab},
    {"slots_are_taken_in_order_if_asked", slots_are_taken_in_order_if_asked},
    {"freed_slots_are_held_back_for_long", freed_slots_are_held_back_for_long},
    {"what_is_held_back_is_as_large_as_asked", what_is_held_back_is_as_large_as_asked},
    {"nothing_is_held_back_if_asked", nothing_is_held_back_if_asked},
    {"trailer_of_another_block_is_found", trailer_of_another_block_is_found},
    {"write_far_behind_the_end_is_found", write_far_behind_the_end_is_found},
    {"kind_is_checked_where_a_block_grows_in_place", kind_is_checked_where_a_block_grows_in_place},
    {"free_by_two_threads_at_once_is_found", free_by_two_threads_at_once_is_found},
};

SCENARIO_MAIN(scenarios)
