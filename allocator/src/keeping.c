#include "keeping.h"

#include "arena.h"
#include "gate.h"
#include "guarded.h"
#include "hardened.h"
#include "memory_hooks.h"
#include "options.h"
#include "os.h"
#include "refaults.h"
#include "shelter.h"
#include "thread_inside.h"

enum {
    PIECE_SLICES = 64,    /* looked at by one piece of cleaning: 4 MiB */
    RETREAT_SLICES =
        256, /* at the street's end, of address space that is given back when a program asks: 16 MiB and more */
    SPAN_PIECE_SLICES = 32, /* purged at most by one piece of spans: 2 MiB */
    CATCH_UP_SLICES = 16 *
        PIECE_SLICES, /* of a look that is overdue, at each fork: 64 MiB, as much as one call may purge */
    WAITS_MOST = 64, /* for pieces of others, when a program asks */
};

/* -- by the keeper ------------------------------------------------------------------------------------------- */

/* While a piece is done the keeper is inside, where a fork finds it; between two it comes out, and goes when one comes. */
static bool begin_piece(void) { return !keeper_is_to_leave() && !memory_hooks_installed() && gate_enter(); }

/* The piece that looks through caches is as long as they are many. */
static bool goes_on(void) { return !keeper_is_to_leave() && gate_is_open(); }

size_t keeping_hurry(void) {
    size_t bytes = 0;
    bool more = true;
    while (more && begin_piece()) {
        more = arena_keep(&bytes);
        gate_leave();
    }
    return bytes;
}

/* How long slabs rest; and whether another look at them may find something. */
static struct refaults refaults;
static bool slabs_pending;

/* By how many milliseconds freed memory is kept longer than by default. */
static uint64_t longer_kept(void) {
    uint32_t kept = option_value(OPTION_RETAIN_MS);
    return kept > RETAIN_DEFAULT_MS ? kept - RETAIN_DEFAULT_MS : 0;
}

/* The program may say so at any time: what it counts on from then on is not purged. */
static bool kept_for_ever(void) { return option_value(OPTION_RETAIN_MS) == RETAIN_FOR_EVER; }

static size_t clean_all(bool *more) {
    uint32_t slice = 0;
    size_t bytes = 0;
    do {
        if (kept_for_ever() || !begin_piece()) {
            *more = true;
            break;
        }
        bytes += heap_clean(&slice, PIECE_SLICES, CLEAN_FOR_KEEPER, more);
        gate_leave();
    } while (slice != 0);
    return bytes;
}

static size_t clean(bool *more) {
    if (kept_for_ever() || !begin_piece()) {
        return 0;
    }
    uint64_t now = os_milliseconds();
    bool due = refaults_are_due(&refaults, now, longer_kept());
    *more |= !due && (slabs_pending || heap_has_new());
    gate_leave();
    if (!due) {
        return 0;
    }
    slabs_pending = false;
    size_t bytes = clean_all(&slabs_pending);
    slabs_pending |= bytes != 0; /* what was freed behind the walk meanwhile counts as seen by it */
    *more |= slabs_pending;
    if (begin_piece()) {
        refaults_note(&refaults, now, bytes, heap_reused());
        gate_leave();
    }
    return bytes;
}

static void adopt(void) {
    bool adopted = true;
    while (adopted && begin_piece()) {
        adopted = thread_adopt_some();
        gate_leave();
    }
}

static void free_parked(void) {
    bool freed = true;
    while (freed && shelter_has_parked() && begin_piece()) {
        freed = thread_free_parked();
        gate_leave();
    }
}

size_t keeping_look(bool *more) {
    *more = false;
    free_parked();
    if (!begin_piece()) {
        return 0;
    }
    borrow_caches(NULL, false, goes_on);
    uint32_t caches = atomic_load_explicit(&registry.count, memory_order_relaxed);
    atomic_store_explicit(&registry.looked_through, caches, memory_order_relaxed);
    gate_leave();
    adopt();
    if (!begin_piece()) {
        return 0;
    }
    arena_revive(false);
    *more |= heap_drain_unneeded();
    gate_leave();
    size_t bytes = clean(more);
    bytes += keeping_hurry();
    if ((modes() & MODE_HARDENED) != 0 && !kept_for_ever() && begin_piece()) {
        bytes += hardened_purge(false, more);
        gate_leave();
    }
    if (!kept_for_ever() && begin_piece()) {
        bytes += heap_purge_magazines(false, goes_on, more);
        gate_leave();
    }
    *more |= !kept_for_ever() && arena_has_more();
    if (begin_piece()) {
        *more |= arena_settle();
        gate_leave();
    }
    return bytes;
}

bool keeping_summon(void) {
    static uint32_t heard; /* the keeper's alone */
    if (begin_piece()) {
        borrow_to_summon();
        gate_leave();
    }
    uint32_t answers = sampling_answers();
    bool any = answers != heard;
    heard = answers;
    return any;
}

/* -- by the program ------------------------------------------------------------------------------------------ */

/* No fork waits. */
static bool outside_goes_on(void) { return gate_is_open(); }

/* What is given back, piece by piece; false after the last. The thread comes out between two, so that a fork does not wait for all of it. */
struct purge {
    enum { LEFT, OWN, HEAPS, SLABS, SPANS, LOCKED } stage;
    unsigned step;
    unsigned waits;
    uint32_t slice;
    size_t bytes;
};

/* What others are purging just now was freed before this call, and is back when it returns; but not for ever, where they go on. */
static bool await_others(struct purge *purge) { return purge->waits++ < WAITS_MOST && arena_await_purge(); }

static bool purge_some(struct purge *purge, enum pass pass) {
    bool more = false; /* of the next look; nobody here asks */
    switch (purge->stage) {
    case LEFT:
        if (!thread_adopt_some() && (!shelter_has_parked() || !thread_free_parked())) {
            purge->stage = OWN;
        }
        return true;
    case OWN:
        if (pass == PASS_CACHE) {
            cache_flush(thread_view.cache);
        }
        purge->stage = HEAPS;
        return true;
    case HEAPS:
        purge->stage = heap_reclaim_piece(&purge->step) ? HEAPS : SLABS;
        return true;
    case SLABS:
        purge->bytes += heap_clean(&purge->slice, PIECE_SLICES, CLEAN_ALL, &more);
        if (purge->slice == 0) {
            arena_revive(true);
            purge->stage = SPANS;
        }
        return true;
    case SPANS:
        more = arena_purge_some(&purge->bytes) || await_others(purge);
        if (!more) {
            guarded_reclaim();
            (void)heap_purge_magazines(true, outside_goes_on, &more); /* not among the bytes that held blocks */
            purge->bytes += hardened_purge(true, &more);
            purge->bytes += arena_retreat(RETREAT_SLICES, true);
            purge->stage = LOCKED;
        }
        return true;
    default:
        return arena_unmap_kept(&purge->bytes);
    }
}

void keeping_catch_up(void) {
    static _Atomic uint32_t next; /* where the look goes on; relaxed: the program forks in one thread, as a rule */
    uint32_t slice = atomic_load_explicit(&next, memory_order_relaxed);
    bool more = false;
    size_t bytes = 0;
    bool due = keeper_is_overdue() && !kept_for_ever();
    enum pass pass = due ? thread_enter() : PASS_REFUSED;
    if (pass == PASS_REFUSED) {
        return;
    }
    unsigned left = keeper_is_overdue() ? CATCH_UP_SLICES : 0; /* else this is a child, which was put right just now */
    while (left > 0 && arena_keep(&bytes)) {
        left -= SPAN_PIECE_SLICES;
    }
    if (left > 0 && slice == 0) {
        (void)heap_drain_unneeded();
    }
    while (left > 0) {
        (void)heap_clean(&slice, PIECE_SLICES, CLEAN_FOR_KEEPER, &more);
        left -= (unsigned)bits_min(left, PIECE_SLICES);
        if (slice == 0) {
            keeper_has_looked(); /* all of it: the next waits again */
            break;
        }
    }
    thread_leave(pass);
    atomic_store_explicit(&next, slice, memory_order_relaxed);
}

size_t keeping_purge(bool (*is_enough)(void)) {
    struct purge purge = {0};
    bool more = true;
    enum pass pass;
    while (more && !is_enough() && (pass = thread_enter()) != PASS_REFUSED) {
        more = purge_some(&purge, pass);
        thread_leave(pass);
    }
    return purge.bytes;
}
