/* Spans that nobody needs any more and that the kernel would not open: at a limit on data what nobody may touch does not count, so that more can be mapped
 * than can be made accessible again. They wait here, all of each closed, which makes room for others, until there is room for them. */
#include "hard_inside.h"
#include "limit.h"
#include "os.h"

/* By address, the highest first: once it is open the street's end is longer, and what is unmapped there is room for the next. `lock` protects it. */
static struct {
    struct lock lock;
    uint32_t first; /* 0: none; the next of each in its descriptor */
} closed;

static size_t bytes_of(uint32_t slice) { return (size_t)arena_span(slice)->slices << SLICE_BITS; }

static void push(uint32_t slice) {
    lock_take(&closed.lock);
    uint32_t *before = &closed.first;
    while (*before > slice) {
        before = &arena_span(*before)->next;
    }
    arena_span(slice)->next = *before;
    *before = slice;
    lock_free(&closed.lock);
}

static uint32_t pop(void) {
    lock_take(&closed.lock);
    uint32_t slice = closed.first;
    closed.first = slice != 0 ? arena_span(slice)->next : 0;
    lock_free(&closed.lock);
    return slice;
}

static void close_whole(uint32_t slice, unsigned guards) {
    struct span *span = arena_span(slice);
    span->clean_pages = (uint16_t)guards;
    bool whole = hard_guard_whole(arena_address(slice), bytes_of(slice), &span->clean_pages);
    span->examined = os_purge(arena_address(slice), bytes_of(slice)) && whole;
    if (span->examined != 0) {
        limit_release(bytes_of(slice));
    }
}

void hard_closed_keep(uint32_t slice, unsigned guards) {
    close_whole(slice, guards);
    push(slice);
}

static bool open_span(uint32_t slice) {
    const struct span *span = arena_span(slice);
    if (span->clean_pages > 0 && !hard_unguard(arena_address(slice), bytes_of(slice), span->clean_pages)) {
        return false;
    }
    if (span->examined != 0) {
        arena_give_clean(slice);
    } else {
        (void)arena_give(slice);
    }
    return true;
}

/* Opens them one after the other until one is refused; returns how many. */
static unsigned open_some(void) {
    unsigned opened = 0;
    uint32_t slice = pop();
    for (; slice != 0 && open_span(slice); slice = pop()) {
        opened++;
    }
    if (slice != 0) {
        push(slice);
    }
    return opened;
}

/* Returns how many there are, and of how many slices. */
static unsigned count(uint32_t *slices) {
    unsigned spans = 0;
    *slices = 0;
    lock_take(&closed.lock);
    for (uint32_t slice = closed.first; slice != 0; slice = arena_span(slice)->next) {
        *slices += arena_span(slice)->slices;
        spans++;
    }
    lock_free(&closed.lock);
    return spans;
}

/* There is no more room than there is; but all over the heap they are in the way of what is wanted as one piece. So free memory that lies together is
 * closed in their stead. True when many became one. */
static bool gather(void) {
    uint32_t run = 0, slices;
    bool zero, many = count(&slices) > 1;
    for (; many && run == 0 && slices > 1; slices /= 2) {
        run = arena_take(slices, 1, ARENA_NO_USE, &zero);
    }
    if (run == 0) {
        return false;
    }
    close_whole(run, 0);
    bool fewer = open_some() > 1;
    push(run);
    return fewer;
}

void hard_closed_open(void) {
    bool fewer = true;
    uint32_t slices;
    while (fewer && count(&slices) > 0) {
        fewer = open_some() > 0;
        if (!fewer) { /* all that is free lies together, and the street ends before it */
            arena_make_room();
            fewer = open_some() > 0 || gather();
        }
    }
}

void hard_closed_after_fork(void) { lock_reset(&closed.lock); }
