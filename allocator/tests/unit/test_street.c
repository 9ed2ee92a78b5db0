/* The street's parts: between two of them lies a page that is never mapped, however far each has grown. */
#include "street.h"

#include <sys/mman.h>

#include "options.h"
#include "os.h"
#include "scenario.h"

/* Asked of the kernel, which says when it cannot read. */
static bool is_there(const void *at) {
    int ends[2];
    EXPECT(pipe(ends) == 0, "no pipe");
    bool there = write(ends[1], at, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return there;
}

/* The page before a part, and behind another; the one before that is in use. */
static void expect_gap(const void *part, const char *name, bool full) {
    const char *gap = (const char *)part - os_page_bytes();
    EXPECT(!is_there(gap), "the page before %s can be read", name);
    EXPECT(!full || is_there(gap - os_page_bytes()), "what lies before %s has not grown to its end", name);
}

/* Takes all that there is; returns the end of the last piece. */
static char *use_up_bookkeeping(char **first) {
    char *at, *end = NULL;
    *first = NULL;
    do {
        while ((at = street_bookkeeping(os_page_bytes())) != NULL) {
            *first = *first == NULL ? at : *first;
            end = at + os_page_bytes();
        }
    } while (street_bookkeeping_grow());
    return end;
}

/* As it begins, wherever the kernel has room for all of it. */
static void parts_lie_apart(void) {
    EXPECT(street_open(), "no street");
    size_t page = os_page_bytes(), slices = street_limit();
    char *first;
    EXPECT(street_bookkeeping_grow() && (first = street_bookkeeping(1)) != NULL, "no bookkeeping");
    EXPECT((char *)arena_spans >= (char *)window.base + slices * sizeof(uint32_t) + page, "no page behind the tags");
    EXPECT(arena_bitmaps >= (char *)arena_spans + slices * sizeof(struct span) + page, "no page behind the spans");
    EXPECT(first >= arena_bitmaps + slices * BITMAP_BYTES + page, "no page behind the bitmaps");
}

/* A small one, to its end. */
static void gaps_stay(void) {
    option_set(OPTION_RESERVE_GIB, 1);
    EXPECT(street_open(), "no street");
    uint32_t at = street_first(), slices;
    while ((slices = street_grow(&at, 1)) != 0) {
        at += slices;
    }
    EXPECT(at == street_limit() && street_described() == at, "the street ends at %u of %u", at, street_limit());
    char *first, *end = use_up_bookkeeping(&first);
    expect_gap(arena_spans, "the spans", true);
    expect_gap(arena_bitmaps, "the bitmaps", true);
    expect_gap(first, "the bookkeeping", true);
    EXPECT(first != NULL && is_there(end - 1) && !is_there(end), "what lies behind the bookkeeping can be read");
    expect_gap(arena_address(street_first()), "the first slice", false);
}

static unsigned asked;
enum os_answer __real_os_map_at(void *at, size_t bytes);
enum os_answer __wrap_os_map_at(void *at, size_t bytes);

enum os_answer __wrap_os_map_at(void *at, size_t bytes) {
    asked++;
    return __real_os_map_at(at, bytes);
}

/* A gibibyte of somebody else's in the way costs one call a few questions, not one for each MiB. */
static void passes_what_is_in_the_way(void) {
    enum { BEFORE = 64, THEIRS = 16384, QUESTIONS_MOST = 40 };
    EXPECT(street_open(), "no street");
    if (street_is_reserved()) {
        return; /* nobody else's is there */
    }
    uint32_t at = street_first(), theirs = at + BEFORE;
    void *wanted = arena_address(theirs);
    void *mapped =
        mmap(wanted, (size_t)THEIRS << SLICE_BITS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(mapped == wanted, "the kernel puts a mapping to %p, not to %p", mapped, wanted);
    while (at <= theirs) {
        asked = 0;
        uint32_t slices = street_grow(&at, 1);
        EXPECT(slices != 0, "the street ends at %u", at);
        at += slices;
    }
    EXPECT(at > theirs + THEIRS && is_there(arena_address(at - 1)), "the street goes on at %u", at);
    EXPECT(asked <= QUESTIONS_MOST, "the kernel was asked %u times", asked);
}

static const struct scenario scenarios[] = {
    {"parts_lie_apart", parts_lie_apart},
    {"gaps_stay", gaps_stay},
    {"passes_what_is_in_the_way", passes_what_is_in_the_way},
};

SCENARIO_MAIN(scenarios)
