#include "keeping.h"

#include "arena.h"
#include "gate.h"
#include "thread_inside.h"

enum { PIECE_SLICES = 64 }; /* looked at by one piece of cleaning: 4 MiB */

/* -- by the keeper ------------------------------------------------------------------------------------------- */

/* While a piece is done the keeper is inside, where a fork finds it; between two it comes out, and goes when one comes. */
static bool begin_piece(void) { return !keeper_is_to_leave() && gate_enter(); }

/* The piece that looks through caches is as long as they are many. */
static bool goes_on(void) { return !keeper_is_to_leave() && gate_is_open(); }

size_t keeping_hurry(void) {
    size_t total = 0, bytes = 1;
    while (bytes > 0 && begin_piece()) {
        bytes = arena_keep();
        total += bytes;
        gate_leave();
    }
    return total;
}

static size_t clean(bool *more) {
    uint32_t slice = 0;
    size_t bytes = 0;
    do {
        if (!begin_piece()) {
            break;
        }
        bytes += heap_clean(&slice, PIECE_SLICES, false, more);
        gate_leave();
    } while (slice != 0);
    return bytes;
}

size_t keeping_look(bool *more) {
    *more = false;
    if (!begin_piece()) {
        return 0;
    }
    borrow_caches(NULL, false, goes_on);
    thread_adopt_some();
    *more |= heap_drain_unneeded();
    gate_leave();
    size_t bytes = clean(more);
    bytes += keeping_hurry();
    *more |= arena_has_more();
    return bytes;
}

/* -- by the program ------------------------------------------------------------------------------------------ */

/* A piece at a time, so that a fork does not wait for all of it. */
size_t keeping_purge(void) {
    enum pass pass = thread_enter();
    if (pass == PASS_REFUSED) {
        return 0;
    }
    if (pass == PASS_CACHE) {
        cache_flush(thread_view.cache);
    }
    heap_reclaim();
    thread_leave(pass);
    size_t bytes = 0;
    uint32_t slice = 0;
    bool more;
    do {
        if ((pass = thread_enter()) == PASS_REFUSED) {
            return bytes;
        }
        bytes += heap_clean(&slice, PIECE_SLICES, true, &more);
        thread_leave(pass);
    } while (slice != 0);
    if ((pass = thread_enter()) != PASS_REFUSED) {
        bytes += arena_purge_all();
        thread_leave(pass);
    }
    return bytes;
}
