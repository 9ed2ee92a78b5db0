/* Large blocks by themselves: where in their first page they start, that freed ones are used again, and how they move. */
#include "large.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "mappings.h"
#include "options.h"
#include "os.h"
#include "pattern.h"
#include "scenario.h"
#include "street_walk.h"

static const size_t MIB = 1024 * 1024;

static void *take(size_t bytes, size_t alignment) {
    bool zero = false;
    void *block = large_take(bytes, alignment, true, &zero);
    EXPECT(block != NULL, "no memory");
    return block;
}

static uint32_t tag(const void *block) {
    uint32_t found = TAG_NONE;
    (void)tag_of(block, &found);
    return found;
}

static void give(void *block) {
    if (tag(block) == TAG_LARGE) {
        large_give_span(block);
    } else {
        EXPECT(large_give_mapping(block), "%p is no mapping", block);
    }
}

static size_t mappings(void) {
    size_t count, bytes;
    large_figures(&count, &bytes);
    return count;
}

static size_t used(void) {
    struct arena_figures figures;
    arena_figures(&figures);
    return figures.used;
}

static void open_arena(void) { EXPECT(arena_open(), "no address space"); }

static bool has_keeper; /* which would do what is due */
bool __wrap_keeper_hurry(void);
bool __wrap_keeper_hurry(void) { return has_keeper; }

/* Every line of a page has its turn, in spans as in mappings, and whoever asks for more than a line gets it. */
static void starts_are_spread(void) {
    enum { BLOCKS = 64 };
    void *block[BLOCKS];
    open_arena();
    for (int kind = 0; kind < 2; kind++) {
        uint64_t lines = 0;
        for (int i = 0; i < BLOCKS; i++) {
            block[i] = take(kind == 0 ? MIB : LARGE_SPAN_MOST + MIB, 1);
            EXPECT((uintptr_t)block[i] % 64 == 0, "a block starts at %p", block[i]);
            lines |= UINT64_C(1) << ((uintptr_t)block[i] % 4096 / 64);
        }
        EXPECT(lines == UINT64_MAX, "lines %#jx of a page have their turn", (uintmax_t)lines);
        for (int i = 0; i < BLOCKS; i++) {
            give(block[i]);
        }
    }
    for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 2) {
        void *aligned = take(MIB, alignment);
        EXPECT(((uintptr_t)aligned & (alignment - 1)) == 0, "%p is not aligned to %zu", aligned, alignment);
        size_t usable = large_usable(aligned, tag(aligned), true);
        EXPECT(usable >= MIB && ((uintptr_t)aligned + usable) % os_page_bytes() == 0, "%zu bytes usable", usable);
        memset(aligned, 1, usable);
        give(aligned);
    }
    street_check(true);
}

/* A block finds room where one of its size was, wherever both start. */
static void freed_blocks_are_used_again(void) {
    open_arena();
    give(take(16 * MIB, 1));
    struct arena_figures before, after;
    arena_figures(&before);
    for (int i = 0; i < 200; i++) {
        give(take(16 * MIB, 1));
    }
    arena_figures(&after);
    EXPECT(after.extent == before.extent, "the arena went from %zu to %zu", before.extent, after.extent);
    street_check(true);
}

static void *resize(void *block, size_t bytes) { return large_resize(block, tag(block), bytes); }

/* Two blocks side by side: the first cannot grow where it is. */
static void *take_walled_in(size_t bytes, void **wall) {
    void *block = take(bytes, 1);
    *wall = take(MIB, 1);
    EXPECT(*wall > block, "the frontier runs backwards");
    return block;
}

static void expect_content(const void *block, size_t bytes) {
    size_t mismatch = pattern_mismatch(block, bytes, 7);
    EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu has changed", mismatch, bytes);
}

/* Pages move, and grow and shrink from then on by the kernel's hand; what they leave reads as zero. */
static void pages_move(void) {
    void *wall;
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER); /* pages of two kinds do not move together */
    void *block = take_walled_in(40 * MIB, &wall);
    char *span = (char *)block;
    pattern_fill(block, 0, 40 * MIB, 7);
    size_t before = used();
    void *moved = resize(block, 60 * MIB);
    if (moved == NULL) {
        return; /* a kernel before 5.7: whoever asked copies */
    }
    EXPECT(moved != block && mappings() == 1, "the block stayed, %zu mappings", mappings());
    EXPECT((uintptr_t)moved % 4096 == (uintptr_t)block % 4096, "it starts on another line");
    EXPECT(used() <= before - 40 * MIB, "its span is in use");
    expect_content(moved, 40 * MIB);
    for (size_t i = 0; i < 40 * MIB; i += 4096) {
        EXPECT(span[i] == 0, "byte %zu stayed behind", i);
    }
    size_t held = 40 * MIB;
    for (size_t bytes = 60 * MIB; bytes <= 300 * MIB; bytes += 31 * MIB + 4000) {
        moved = resize(moved, bytes);
        EXPECT(moved != NULL && large_usable(moved, TAG_NONE, true) >= bytes, "%zu bytes cannot be had", bytes);
        expect_content(moved, held);
        pattern_fill(moved, held, bytes, 7);
        held = bytes;
    }
    for (; held > 2 * MIB; held = held / 3 * 2) {
        moved = resize(moved, held);
        EXPECT(moved != NULL && large_usable(moved, TAG_NONE, true) - held < os_page_bytes(), "%zu bytes stay", held);
        expect_content(moved, held);
    }
    give(moved);
    give(wall);
    EXPECT(mappings() == 0 && used() == 0, "%zu mappings, %zu bytes in use", mappings(), used());
    street_check(true);
}

/* Locked memory stays where it is, and locked. The kernel is asked by itself: a sanitizer's mlock locks nothing. */
static void locked_pages_stay(void) {
    void *wall;
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    void *block = take_walled_in(33 * MIB, &wall);
    pattern_fill(block, 0, 33 * MIB, 7);
    if (syscall(SYS_mlock, block, 33 * MIB) != 0) {
        return; /* more than this user may lock */
    }
    EXPECT(resize(block, 50 * MIB) == NULL && mappings() == 0, "locked pages were moved");
    expect_content(block, 33 * MIB);
    EXPECT(syscall(SYS_munlock, block, 33 * MIB) == 0, "munlock failed");
    give(block);
    give(wall);
    street_check(true);
}

/* The room that a block has to grow may have been somebody's before: once the block's own pages have moved away it reads as zero too. */
static void room_to_grow_is_cleared(void) {
    bool zero;
    void *wall;
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    char *before = take_walled_in(60 * MIB, &wall);
    memset(before, 1, 60 * MIB);
    give(before);
    char *block = large_take_growing(40 * MIB, &zero);
    uint32_t slice = arena_slice(block), slices = arena_span(slice)->slices;
    EXPECT(!zero && slice == arena_slice(before) && slices >= 50 * MIB >> SLICE_BITS, "%u slices at %u", slices, slice);
    EXPECT(resize(block, 48 * MIB) == block, "a block that grows has no room");
    if (resize(block, 80 * MIB) == NULL) {
        return; /* a kernel before 5.7: whoever asked copies */
    }
    EXPECT(mappings() == 1 && arena_span(slice)->state == SPAN_CLEAN, "the block stayed");
    for (size_t at = 0; at < (size_t)slices << SLICE_BITS; at += 64) {
        EXPECT(((char *)arena_address(slice))[at] == 0, "byte %zu stayed behind", at);
    }
    street_check(true);
}

static uint32_t tag_once_left;
void *__real_os_move_away(void *at, size_t bytes, size_t new_bytes);
void *__wrap_os_move_away(void *at, size_t bytes, size_t new_bytes);

void *__wrap_os_move_away(void *at, size_t bytes, size_t new_bytes) {
    void *moved = __real_os_move_away(at, bytes, new_bytes);
    tag_once_left = tag(at) | tag((char *)at + bytes);
    return moved;
}

/* Where memory is out the pages of a block move at last: its span's addresses go with them, and so does the room that it had to grow. */
static void what_moves_at_last_leaves_nothing(void) {
    bool zero;
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    void *block = large_take_growing(8 * MIB, &zero);
    EXPECT(block != NULL, "no memory");
    uint32_t slice = arena_slice(block);
    char *span = arena_address(slice);
    size_t room = (size_t)arena_span(slice)->slices << SLICE_BITS, page = os_page_bytes();
    memset(span, 1, room);
    pattern_fill(block, 0, 8 * MIB, 7);
    void *moved = large_resize_away(block, tag(block), 20 * MIB);
    EXPECT(moved != NULL && mappings() == 1, "nothing has moved");
    EXPECT(tag_once_left == TAG_NONE, "others may map what is tagged with %#x", tag_once_left);
    expect_content(moved, 8 * MIB);
    for (size_t at = 0; at < room; at += page) {
        unsigned char resident;
        EXPECT(mincore(span + at, page, &resident) != 0, "byte %zu of %zu is mapped", at, room);
    }
    give(moved);
    EXPECT(arena_span(slice)->state == SPAN_UNMAPPED, "addresses that are left over are in state %u",
           arena_span(slice)->state);
}

/* One that cannot move is a block as before. */
static void what_cannot_move_stays_a_block(void) {
    bool zero;
    open_arena();
    void *block = large_take_growing(8 * MIB, &zero);
    EXPECT(block != NULL && large_resize_away(block, tag(block), (size_t)PTRDIFF_MAX) == NULL,
           "no memory, or too much");
    EXPECT(tag(block) == TAG_LARGE && tag((char *)block + 8 * MIB) == TAG_INSIDE, "its tags are gone");
    give(block);
    EXPECT(mappings() == 0 && used() == 0, "%zu mappings, %zu bytes in use", mappings(), used());
    street_check(true);
}

static size_t dirty(void) {
    struct arena_figures figures;
    arena_figures(&figures);
    return figures.dirty;
}

/* What lies dirty gives way to a mapping, as far as that is large, and so it does when one grows. What is left of a span that was begun stays. */
static void dirty_spans_give_way(void) {
    enum { SPAN_MIB = 120 };
    open_arena();
    option_set(OPTION_RETAIN_MIB, 4 * SPAN_MIB);
    option_set(OPTION_RETAIN_MS, 3600 * 1000);
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    void *spans[] = {take(SPAN_MIB * MIB, 1), take(SPAN_MIB * MIB, 1), take(SPAN_MIB * MIB, 1)};
    for (int i = 0; i < 3; i++) {
        give(spans[i]);
    }
    size_t before = dirty();
    EXPECT(before > 3 * SPAN_MIB * MIB, "%zu bytes are dirty", before);
    void *block = take(LARGE_SPAN_MOST + MIB, 1);
    size_t gone = before - dirty();
    EXPECT(gone >= LARGE_SPAN_MOST + MIB && gone < LARGE_SPAN_MOST + 3 * MIB, "%zu bytes have gone", gone);
    give(take(MIB, 1));
    EXPECT(before - dirty() == gone, "%zu more have gone since", before - dirty() - gone);
    block = resize(block, LARGE_SPAN_MOST + 51 * MIB);
    gone = before - dirty() - gone;
    EXPECT(block != NULL && gone >= 50 * MIB && gone < 52 * MIB, "%zu bytes have gone for 50 MiB", gone);
    size_t left = dirty();
    option_set(OPTION_RETAIN_MIB, RETAIN_ALL_MIB);
    give(take(LARGE_SPAN_MOST + MIB, 1));
    EXPECT(dirty() == left, "%zu bytes have gone although all is to stay", left - dirty());
    give(block);
    street_check(true);
}

enum { GIVE_WAY_MIB = 64 };

/* Three spans of 100 MiB are freed beside a keeper, of the first of which so much is locked. False if that may not be. */
static bool free_three(size_t locked) {
    enum { SPAN_MIB = 100 };
    open_arena();
    option_set(OPTION_RETAIN_MIB, 4 * SPAN_MIB);
    option_set(OPTION_RETAIN_MS, 3600 * 1000);
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    has_keeper = true;
    void *spans[] = {take(SPAN_MIB * MIB, 1), take(SPAN_MIB * MIB, 1), take(SPAN_MIB * MIB, 1)};
    bool may_lock = locked == 0 || syscall(SYS_mlock, spans[0], locked) == 0;
    for (int i = 0; i < 3; i++) {
        give(spans[i]);
    }
    return may_lock;
}

/* Beyond 64 MiB what gives way is the keeper's work: it is due then, and no more than that. */
static void one_call_purges_so_much(void) {
    (void)free_three(0);
    size_t before = dirty(), wanted = 200 * MIB, kept = 0;
    void *block = take(wanted, 1);
    size_t gone = before - dirty();
    EXPECT(gone >= GIVE_WAY_MIB * MIB && gone < (GIVE_WAY_MIB + 3) * MIB, "%zu bytes have gone at once", gone);
    while (arena_keep(&kept)) {
    }
    gone = before - dirty();
    EXPECT(gone >= wanted && gone < wanted + 3 * MIB, "%zu bytes have gone in all", gone);
    give(block);
    street_check(true);
}

/* The call tries no more if the kernel refuses. */
static void one_call_tries_so_much(void) {
    if (!free_three((GIVE_WAY_MIB + 6) * MIB)) {
        return; /* an ordinary user without the right to */
    }
    size_t before = dirty();
    void *block = take(LARGE_SPAN_MOST + MIB, 1);
    EXPECT(dirty() == before, "%zu bytes have gone behind what is locked", before - dirty());
    give(block);
    street_check(true);
}

/* Blocks that are aligned to their size lie side by side. */
static void aligned_blocks_take_their_own_addresses(void) {
    enum { BLOCKS = 40 };
    open_arena();
    option_set(OPTION_HUGE_FROM_MIB, HUGE_NEVER);
    for (size_t alignment = 128 * 1024; alignment <= 4 * MIB; alignment *= 2) {
        void *block[BLOCKS];
        struct arena_figures before, after;
        arena_figures(&before);
        for (int i = 0; i < BLOCKS; i++) {
            block[i] = take(alignment, alignment);
            EXPECT((uintptr_t)block[i] % alignment == 0, "%p is not aligned to %zu", block[i], alignment);
            memset(block[i], 1, large_usable(block[i], tag(block[i]), true));
        }
        arena_figures(&after);
        EXPECT(after.extent - before.extent <= (BLOCKS + 1) * alignment, "%zu bytes for %d blocks of %zu",
               after.extent - before.extent, BLOCKS, alignment);
        EXPECT(resize(block[0], alignment - 1) == block[0] && resize(block[0], alignment) == block[0], "it moves");
        EXPECT(large_usable(block[0], tag(block[0]), true) == alignment, "its size has changed");
    }
}

/* What large.c has of the kernel. With `meanwhile`, the next table is made while another thread makes one too. */
static size_t held;
static void (*meanwhile)(void);
void *__real_os_map(size_t bytes, size_t alignment);
void __real_os_unmap(void *at, size_t bytes);
void *__wrap_os_map(size_t bytes, size_t alignment);
void __wrap_os_unmap(void *at, size_t bytes);

void *__wrap_os_map(size_t bytes, size_t alignment) {
    void (*deed)(void) = bytes < MIB ? meanwhile : NULL;
    void *at = __real_os_map(bytes, alignment);
    held += at != NULL ? bytes : 0;
    if (deed != NULL) {
        meanwhile = NULL;
        deed();
    }
    return at;
}

void __wrap_os_unmap(void *at, size_t bytes) {
    held -= bytes;
    __real_os_unmap(at, bytes);
}

static void *another;
static void take_another(void) { another = take(LARGE_SPAN_MOST + MIB, 1); }

/* A table of mappings that is replaced goes back, and so does one that came too late. */
static void old_tables_go_back(void) {
    enum { BLOCKS = 300 };
    static void *block[BLOCKS];
    open_arena();
    give(take(LARGE_SPAN_MOST + MIB, 1));
    size_t first = held, grown = 0;
    EXPECT(first > 0 && first <= bits_max(4096, os_page_bytes()), "the first table has %zu bytes", first);
    for (size_t i = 0; i < BLOCKS; i++) {
        meanwhile = i > BLOCKS / 2 ? take_another : NULL;
        block[i] = take(LARGE_SPAN_MOST + MIB, 1);
        grown += another != NULL;
        if (another != NULL) {
            give(another);
            another = NULL;
        }
    }
    meanwhile = NULL;
    for (size_t i = 0; i < BLOCKS; i++) {
        give(block[i]);
    }
    EXPECT(os_page_bytes() > 4096 || grown == 1, "two tables were made at once %zu times", grown);
    size_t last = first;
    while (os_page_bytes() == 4096 && last < (BLOCKS + 1) * sizeof(struct mapping_row)) { /* the first row is none */
        last *= 2;
    }
    EXPECT(held == last, "%zu bytes are held where the table has %zu", held, last);
    street_check(true);
}

static void give_again(const void *unused) {
    (void)unused;
    open_arena();
    void *block = take(MIB, 1);
    large_give_span(block);
    large_give_span(block);
}

/* Two threads free one block, and both have seen its tag before either gives it. */
static void given_by_two_who_saw_its_tag(void) {
    char output[1024];
    int status = scenario_child(give_again, NULL, output, sizeof output);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "wait status %#x: %s", (unsigned)status, output);
    EXPECT(strstr(output, "freestone: double free: pointer 0x") != NULL, "it says %s", output);
}

static const struct scenario scenarios[] = {
    {"starts_are_spread", starts_are_spread},
    {"freed_blocks_are_used_again", freed_blocks_are_used_again},
    {"pages_move", pages_move},
    {"locked_pages_stay", locked_pages_stay},
    {"room_to_grow_is_cleared", room_to_grow_is_cleared},
    {"what_moves_at_last_leaves_nothing", what_moves_at_last_leaves_nothing},
    {"what_cannot_move_stays_a_block", what_cannot_move_stays_a_block},
    {"dirty_spans_give_way", dirty_spans_give_way},
    {"one_call_purges_so_much", one_call_purges_so_much},
    {"one_call_tries_so_much", one_call_tries_so_much},
    {"aligned_blocks_take_their_own_addresses", aligned_blocks_take_their_own_addresses},
    {"old_tables_go_back", old_tables_go_back},
    {"given_by_two_who_saw_its_tag", given_by_two_who_saw_its_tag},
};

SCENARIO_MAIN(scenarios)
