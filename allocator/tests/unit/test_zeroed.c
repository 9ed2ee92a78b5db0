/* Fresh zeroed blocks are brought in where those before were written, and nowhere else. */
#include "zeroed.h"

#include "os.h"
#include "scenario.h"

enum { MIB = 1 << 20, SAMPLES_MOST = 8 };

/* What a keeper knows of filters is its own matter: whether it may ask is the test's. */
static bool may_ask = true;
bool __wrap_keeper_may_ask(void); /* NOLINT(bugprone-reserved-identifier): ld's name */
bool __wrap_keeper_may_ask(void) { return may_ask; } /* NOLINT(bugprone-reserved-identifier) */

static bool is_written(const char *page) {
    void *pages[1] = {(void *)(uintptr_t)page}; /* NOLINT(performance-no-int-to-ptr): without its const */
    return os_are_written(pages, 1);
}

/* A fresh block as calloc has it: it begins anywhere in its first page, and so may end. */
static char *fresh(size_t bytes) {
    char *at = os_map(bytes + 2 * os_page_bytes(), os_page_bytes());
    EXPECT(at != NULL, "no mapping");
    char *block = at + 5 * 64;
    zeroed_fresh(block, bytes);
    return block;
}

/* Pages of a block that have memory of their own. */
static size_t pages_of(const char *block, size_t bytes) {
    size_t count = 0;
    for (size_t at = 0; at < bytes; at += os_page_bytes()) {
        count += is_written(block + at);
    }
    return count;
}

static bool is_brought(const char *block, size_t bytes) {
    size_t pages = pages_of(block, bytes);
    EXPECT(pages == 0 || pages + SAMPLES_MOST >= bytes / os_page_bytes(), "%zu pages of %zu bytes were brought in",
           pages, bytes);
    EXPECT(pages < bytes / os_page_bytes(), "no page is left by which this block will be judged");
    return pages != 0;
}

static void write_all(char *block, size_t bytes) { memset(block, 1, bytes); }

static void read_all(const char *block, size_t bytes) {
    for (size_t at = 0; at < bytes; at += os_page_bytes()) {
        EXPECT(*(const volatile char *)(block + at) == 0, "byte %zu is not zero", at);
    }
}

static void two_written_and_the_third_is_there(void) {
    for (size_t bytes = ZEROED_LEAST; bytes <= ZEROED_MOST; bytes *= 2) {
        for (unsigned i = 0; i < 6; i++) {
            char *block = fresh(bytes);
            bool brought = is_brought(block, bytes);
            EXPECT(brought == (i >= 2), "block %u of %zu bytes was %sbrought in", i, bytes, brought ? "" : "not ");
            read_all(block, bytes);
            write_all(block, bytes);
        }
    }
}

static void what_was_only_read_costs_no_memory(void) {
    for (unsigned i = 0; i < 20; i++) {
        char *block = fresh(MIB);
        read_all(block, MIB);
        EXPECT(pages_of(block, MIB) == 0, "block %u has memory that nobody wrote", i);
    }
}

/* All but one page in so many. */
static void sparse_blocks_are_left_alone(void) {
    for (unsigned i = 0; i < 20; i++) {
        char *block = fresh(MIB);
        EXPECT(!is_brought(block, MIB), "block %u was brought in", i);
        memset(block, 1, MIB / 2);
    }
}

static void taken_before_the_last_was_written(void) {
    char *blocks[20];
    for (unsigned i = 0; i < 20; i++) {
        blocks[i] = fresh(MIB);
        EXPECT(!is_brought(blocks[i], MIB), "block %u was brought in, and none was written", i);
    }
}

static void in_vain_is_dear(void) {
    unsigned brought = 0, phases = 40;
    for (unsigned phase = 0; phase < phases; phase++) { /* three that are written, one that is not */
        for (unsigned i = 0; i < 4; i++) {
            char *block = fresh(MIB);
            brought += is_brought(block, MIB);
            if (i < 3) {
                write_all(block, MIB);
            }
        }
    }
    EXPECT(brought <= 2, "%u of %u blocks that were left unwritten, and those before, were brought in", brought,
           4 * phases);
}

/* ... but not for ever. */
static void what_was_in_vain_is_forgiven(void) {
    for (unsigned i = 0; i < 3; i++) {
        char *block = fresh(MIB);
        if (i < 2) {
            write_all(block, MIB);
        }
    }
    unsigned first = 0;
    for (unsigned i = 1; i < 30; i++) {
        char *block = fresh(MIB);
        first = first == 0 && is_brought(block, MIB) ? i : first;
        write_all(block, MIB);
    }
    EXPECT(first == 17, "after a block that was brought in for nothing number %u was the next", first);
}

/* The block is gone, and its memory: nothing is known of it, and nothing changes. */
static void given_back_is_not_in_vain(void) {
    char *block = NULL;
    for (unsigned i = 0; i < 10; i++) {
        if (i >= 3) {
            EXPECT(os_purge((char *)((uintptr_t)block & ~(uintptr_t)4095), MIB + os_page_bytes()), "not purged");
        }
        block = fresh(MIB);
        EXPECT(is_brought(block, MIB) == (i >= 2), "block %u", i);
        write_all(block, MIB);
    }
}

static void sizes_learn_apart(void) {
    for (unsigned i = 0; i < 10; i++) {
        write_all(fresh(MIB), MIB);
        EXPECT(!is_brought(fresh(2 * MIB), 2 * MIB), "a larger block was brought in");
    }
    EXPECT(is_brought(fresh(MIB), MIB), "the others were written");
}

static void small_and_huge_ones_are_none(void) {
    const size_t sizes[] = {ZEROED_LEAST - 1, ZEROED_MOST + 1, 8 * MIB};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (unsigned n = 0; n < 6; n++) {
            char *block = fresh(sizes[i]);
            EXPECT(pages_of(block, sizes[i]) == 0, "%zu bytes were brought in", sizes[i]);
            write_all(block, sizes[i]);
        }
    }
}

static void under_filters_nothing_is_asked(void) {
    may_ask = false;
    for (unsigned i = 0; i < 6; i++) {
        char *block = fresh(MIB);
        EXPECT(pages_of(block, MIB) == 0, "block %u was brought in", i);
        write_all(block, MIB);
    }
}

static const struct scenario scenarios[] = {
    {"two_written_and_the_third_is_there", two_written_and_the_third_is_there},
    {"what_was_only_read_costs_no_memory", what_was_only_read_costs_no_memory},
    {"sparse_blocks_are_left_alone", sparse_blocks_are_left_alone},
    {"taken_before_the_last_was_written", taken_before_the_last_was_written},
    {"in_vain_is_dear", in_vain_is_dear},
    {"what_was_in_vain_is_forgiven", what_was_in_vain_is_forgiven},
    {"given_back_is_not_in_vain", given_back_is_not_in_vain},
    {"sizes_learn_apart", sizes_learn_apart},
    {"small_and_huge_ones_are_none", small_and_huge_ones_are_none},
    {"under_filters_nothing_is_asked", under_filters_nothing_is_asked},
};

int main(int count, char **words) {
    char page[1] = {1};
    if (!is_written(page)) {
        expect_skip("this kernel does not tell which pages were written");
    }
    return scenario_main(scenarios, sizeof scenarios / sizeof *scenarios, count, words);
}
