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

/* An address space of another machine: what its kernel would answer, and nothing is mapped. None when `end` is 0. */
static struct {
    uintptr_t end; /* of the program's addresses */
    uintptr_t chosen; /* where the kernel puts what may lie anywhere */
    uintptr_t program, mappings; /* where they lie, each SPREAD long */
} space;
static const size_t SPREAD = (size_t)1 << 30;
static unsigned asked;
static size_t asked_most; /* bytes */

static bool is_in(uintptr_t at, size_t bytes, uintptr_t theirs) { return at < theirs + SPREAD && theirs < at + bytes; }

enum os_answer __real_os_map_at(void *at, size_t bytes);
enum os_answer __wrap_os_map_at(void *at, size_t bytes);
void *__real_os_find(size_t bytes, size_t alignment);
void *__wrap_os_find(size_t bytes, size_t alignment);
void *__real_os_reserve(size_t bytes, size_t alignment);
void *__wrap_os_reserve(size_t bytes, size_t alignment);

enum os_answer __wrap_os_map_at(void *at, size_t bytes) {
    asked++;
    asked_most = bytes > asked_most ? bytes : asked_most;
    if (space.end != 0 && (uintptr_t)at + bytes > space.end) {
        return OS_REFUSED;
    }
    if (space.end != 0 && (is_in((uintptr_t)at, bytes, space.program) || is_in((uintptr_t)at, bytes, space.mappings))) {
        return OS_OCCUPIED;
    }
    return space.end != 0 ? OS_DONE : __real_os_map_at(at, bytes);
}

bool __real_os_unmap_unseen(void *at, size_t bytes);
bool __wrap_os_unmap_unseen(void *at, size_t bytes);

bool __wrap_os_unmap_unseen(void *at, size_t bytes) { return space.end != 0 || __real_os_unmap_unseen(at, bytes); }

void *__wrap_os_find(size_t bytes, size_t alignment) {
    asked_most = bytes > asked_most ? bytes : asked_most;
    return space.end == 0 ? __real_os_find(bytes, alignment) : (void *)space.chosen;
}

void *__wrap_os_reserve(size_t bytes, size_t alignment) {
    asked_most = bytes > asked_most ? bytes : asked_most;
    return space.end == 0 ? __real_os_reserve(bytes, alignment) : NULL;
}

/* Addresses of 38 to 48 bits, from above and from below: there is room for a heap of some size, found by few questions for little. */
static void is_found_in_other_spaces(void) {
    static const struct {
        unsigned end, chosen, program; /* in GiB */
        bool upwards;
        unsigned least;
    } spaces[] = {
        {256, 255, 170, false, 64},
        {256, 85, 170, true, 32}, /* riscv64, sv39 */
        {512, 511, 341, false, 128},
        {512, 128, 341, true, 48}, /* aarch64, 39 bits */
        {131072, 131071, 87381, false, 1024},
        {131072, 43690, 87381, true, 1024},   /* x86-64 */
        {262144, 262143, 174762, false, 1024},
        {262144, 65536, 174762, true, 1024}, /* aarch64, 48 bits */
        {131072, 256, 255, true, 1024}, /* a guest of QEMU */
    };
    enum { GIB = 30, ASKED_MOST = 16, REST_GIB = 16 };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        space.end = (uintptr_t)spaces[i].end << GIB;
        space.chosen = (uintptr_t)spaces[i].chosen << GIB;
        space.program = (uintptr_t)spaces[i].program << GIB;
        space.mappings = spaces[i].upwards ? space.chosen - SPREAD : space.chosen;
        asked = 0;
        asked_most = 0;
        EXPECT(street_open(), "no street among %u GiB", spaces[i].end);
        uintptr_t end = window.base + ((uintptr_t)street_limit() << SLICE_BITS);
        EXPECT(street_limit() >= spaces[i].least << (GIB - SLICE_BITS) && end <= space.end,
               "%u GiB of addresses: %u slices from %lx on", spaces[i].end, street_limit(), window.base);
        EXPECT(!is_in(window.base, end - window.base, space.program) &&
                   !is_in(window.base, end - window.base, space.mappings),
               "%u GiB of addresses: the street runs over others' from %lx on", spaces[i].end, window.base);
        EXPECT(asked <= ASKED_MOST && asked_most <= (size_t)REST_GIB << GIB, "asked %u times, for %zu bytes at most",
               asked, asked_most);
    }
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
    {"is_found_in_other_spaces", is_found_in_other_spaces},
};

SCENARIO_MAIN(scenarios)
