#include "purge.h"

#include <stdatomic.h>

#include "ages.h"
#include "arena_lock.h"
#include "bins.h"
#include "decay.h"
#include "keeper.h"
#include "limit.h"
#include "memory_hooks.h"
#include "options.h"
#include "os.h"
#include "patience.h"
#include "spans.h"

/* Protected by the arena's lock, but what is atomic: asked without it, by those who can do with a stale answer (relaxed). */
static struct {
    uint32_t awaiting;        /* threads asleep on `pieces` */
    _Atomic uint32_t rest;    /* what is left of the span of which a piece was purged last; 0 when nothing */
    _Atomic uint32_t pieces;  /* being purged at the moment; changed under the lock */
    _Atomic size_t owed; /* bytes to go back now, whatever the budget is; two threads may lose a change of theirs */
    _Atomic uint64_t total;
    _Atomic bool expects; /* something was given back since what was kept was asked for */
    struct decay decay;
    /* Without a background thread (unattended_bytes). Relaxed: threads may lose a change of each other's. */
    _Atomic size_t early; /* bytes purged before their time, and not taken again */
    _Atomic size_t regretted; /* bytes of those that were taken again within that time */
    _Atomic uint64_t purged_early, regretted_at; /* milliseconds: when that last happened */
} purge;

/* Whether nothing returns memory while the program idles, since no background thread may be started (system-call filters, and one thread), and the
 * program has not chosen what is retained. */
static bool is_unattended(void) {
    return unlikely(keeper_is_barred()) && option_value(OPTION_RETAIN_MIB) == RETAIN_DEFAULT_MIB &&
           option_value(OPTION_RETAIN_PERCENT) == RETAIN_DEFAULT_PERCENT &&
           option_value(OPTION_RETAIN_MS) == RETAIN_DEFAULT_MS;
}

/* An eighth of the budget is retained then, and the bytes that were taken again soon after they had been purged: a program whose demand swings
 * faults once. */
static uint64_t unattended_bytes(uint64_t chosen) {
    enum { PART = 8 };
    return bits_min(chosen, chosen / PART + atomic_load_explicit(&purge.regretted, memory_order_relaxed));
}

/* Near a limit no more than half of the room that is left: free spans are then a third of what is not in use, at most. */
static uint64_t budget_bytes(void) {
    uint64_t chosen = ((uint64_t)option_value(OPTION_RETAIN_MIB) << 20) +
                      ((uint64_t)spans_used() << SLICE_BITS) * option_value(OPTION_RETAIN_PERCENT) / 100;
    chosen = is_unattended() ? unattended_bytes(chosen) : chosen;
    return bits_min(chosen, limit_room() / 2);
}

/* Bytes were purged since they were due, and not because the program asked or needed the room. What was regretted long ago is not needed any more. */
static void note_early(size_t bytes) {
    enum { FORGET_TIMES = 16 };
    if (bytes == 0 || !is_unattended()) {
        return;
    }
    uint64_t now = os_milliseconds();
    uint64_t since = now - atomic_load_explicit(&purge.regretted_at, memory_order_relaxed);
    if (since > (uint64_t)FORGET_TIMES * option_value(OPTION_RETAIN_MS)) {
        atomic_store_explicit(&purge.regretted, 0, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&purge.early, bytes, memory_order_relaxed);
    atomic_store_explicit(&purge.purged_early, now, memory_order_relaxed);
}

static void regret_aged(size_t bytes) {
    if (likely(atomic_load_explicit(&purge.decay.trial, memory_order_relaxed) == 0)) {
        return;
    }
    arena_lock();
    decay_taken(&purge.decay, option_value(OPTION_RETAIN_MS), os_milliseconds(), bytes);
    arena_unlock();
}

static void regret_early(size_t bytes) {
    size_t early = atomic_load_explicit(&purge.early, memory_order_relaxed);
    if (likely(early == 0)) {
        return;
    }
    enum { SOON_TIMES = 4 };
    uint64_t now = os_milliseconds(), since = now - atomic_load_explicit(&purge.purged_early, memory_order_relaxed);
    if (since > (uint64_t)SOON_TIMES * option_value(OPTION_RETAIN_MS)) {
        atomic_store_explicit(&purge.early, 0, memory_order_relaxed); /* it would be gone in any case */
        return;
    }
    size_t again = bits_min(early, bytes);
    atomic_store_explicit(&purge.early, early - again, memory_order_relaxed);
    atomic_fetch_add_explicit(&purge.regretted, again, memory_order_relaxed);
    atomic_store_explicit(&purge.regretted_at, now, memory_order_relaxed);
}

void purge_regret(size_t bytes) {
    regret_aged(bytes);
    regret_early(bytes);
}

static bool oldest_has_aged(void) {
    uint32_t retain = option_value(OPTION_RETAIN_MS);
    return retain != RETAIN_FOR_EVER && os_milliseconds() - ages_oldest_stamp() > decay_ms(&purge.decay, retain);
}

/* Bytes were purged that were freed at that time. */
static void note_aged(uint64_t freed, size_t bytes) {
    arena_lock();
    decay_purged(&purge.decay, option_value(OPTION_RETAIN_MS), os_milliseconds(), freed, bytes);
    arena_unlock();
}

static bool is_owed(void) { return atomic_load_explicit(&purge.owed, memory_order_relaxed) != 0; }

void purge_owe(size_t bytes) { atomic_store_explicit(&purge.owed, bytes, memory_order_relaxed); }

/* Nothing is owed any more once nothing is dirty: what is freed later is no part of it. The caller holds the arena's lock. */
static void pay(size_t bytes) {
    size_t owed = atomic_load_explicit(&purge.owed, memory_order_relaxed);
    if (unlikely(owed != 0)) {
        atomic_store_explicit(&purge.owed, ages_slices() == 0 ? 0 : owed - bits_min(owed, bytes), memory_order_relaxed);
    }
}

bool purge_is_beyond(void) { return ages_slices() != 0 && (ages_bytes() > budget_bytes() || oldest_has_aged()); }

bool purge_is_due(void) { return purge_is_beyond() || (is_owed() && ages_slices() != 0); }

bool purge_is_under_way(void) {
    uint32_t rest = atomic_load_explicit(&purge.rest, memory_order_relaxed);
    return rest != 0 && rest == ages_oldest();
}

void purge_expect(void) { atomic_store_explicit(&purge.expects, true, memory_order_relaxed); }

void purge_revive(bool all) {
    if (atomic_exchange_explicit(&purge.expects, false, memory_order_relaxed) || all) {
        bool more = true;
        while (more) { /* neighbours are joined, so these are few */
            arena_lock();
            more = spans_revive();
            arena_unlock();
        }
    }
}

void purge_doubt(void) {
    arena_lock();
    uint32_t spans = bins_spans(SPAN_CLEAN); /* no more: others purge meanwhile */
    arena_unlock();
    for (bool more = true; more && spans > 0; spans--) {
        arena_lock();
        more = spans_doubt();
        arena_unlock();
    }
}

uint64_t purge_total(void) { return atomic_load_explicit(&purge.total, memory_order_relaxed); }

void purge_count(size_t bytes) { atomic_fetch_add_explicit(&purge.total, bytes, memory_order_relaxed); }

/* From the span's start to the end of the chunk that it lies in, so that whole chunks are purged as such. */
static uint32_t piece_of(uint32_t slice, uint32_t most) {
    uint32_t in_chunk = huge_chunk(slice) + CHUNK_SLICES - slice;
    return (uint32_t)bits_min(bits_min(arena_span(slice)->slices, in_chunk), most);
}

/* A whole chunk that is huge stays so. */
static bool is_whole_huge(uint32_t slice, uint32_t slices) {
    return slices == CHUNK_SLICES && huge_chunk(slice) == slice && huge_is_huge(slice);
}

/* A piece is nobody's any more. */
static void begin_piece(void) { atomic_fetch_add_explicit(&purge.pieces, 1, memory_order_relaxed); }

/* It was let go. The caller holds the arena's lock, which is given back here. */
static void end_piece(void) {
    atomic_fetch_sub_explicit(&purge.pieces, 1, memory_order_relaxed);
    uint32_t asleep = purge.awaiting;
    arena_unlock();
    for (; unlikely(asleep > 0); asleep--) { /* all: this may be the last piece */
        os_wake(&purge.pieces);
    }
}

struct purge_rest purge_hold_rest(struct huge_request plain, uint32_t slice) {
    struct purge_rest rest = {slice, 0};
    if (likely(plain.slices == 0)) {
        return rest;
    }
    uint32_t end = huge_chunk(slice) == slice ? slice : huge_chunk(slice) + CHUNK_SLICES;
    end = (uint32_t)bits_min(end, spans_front());
    while (rest.slice < end && arena_span(rest.slice)->state != SPAN_HUGE) {
        rest.slice += arena_span(rest.slice)->slices;
    }
    if (rest.slice < end) {
        rest.slices = (uint32_t)bits_min(arena_span(rest.slice)->slices, end - rest.slice);
        (void)spans_hold(rest.slice, rest.slices);
        begin_piece();
    }
    return rest;
}

void purge_rest(struct purge_rest rest) {
    if (rest.slices > 0) {
        (void)os_purge(arena_address(rest.slice), (size_t)rest.slices << SLICE_BITS);
        arena_lock();
        spans_let_go(rest.slice, rest.slices, SPAN_CLEAN); /* nobody has written there */
        end_piece();
    }
}

/* The kernel refuses the whole where one page is locked. The halves are purged, and theirs where they are refused, by a bounded number of calls: two
 * pages of a huge page are found so, and where all is locked nothing is. Returns the bytes that went. */
static size_t purge_parts(char *at, size_t bytes) {
    enum { CALLS_MOST = 64 };
    size_t gone = 0, page = os_page_bytes(), size = bytes;
    char *end = at + bytes;
    for (int calls = 0; at < end && calls < CALLS_MOST;) {
        size = bits_min(bits_max(size / 2 & ~(page - 1), page), (size_t)(end - at));
        bool purged = os_purge(at, size);
        calls++;
        if (purged || size == page) {
            gone += purged ? size : 0;
            at += size;
            size *= 4; /* and so twice as much is tried next */
        }
    }
    return gone;
}

uint32_t purge_piece(uint32_t most, bool begins, size_t *bytes) {
    arena_lock();
    /* Asked under the lock: what the span held before was freed under it, and a hook that has to see the span go was installed before that. */
    uint32_t slice = memory_hooks_may_call() ? ages_oldest() : 0;
    if (slice == 0) {
        pay(0);
        arena_unlock();
        return 0;
    }
    uint32_t slices = piece_of(slice, most);
    bool whole = slices == arena_span(slice)->slices, aged = oldest_has_aged();
    uint64_t freed = arena_span(slice)->stamp;
    size_t before = (size_t)spans_hold(slice, slices) * os_page_bytes();
    pay((size_t)slices << SLICE_BITS);
    if (begins || slice == atomic_load_explicit(&purge.rest, memory_order_relaxed)) {
        atomic_store_explicit(&purge.rest, whole ? 0 : slice + slices, memory_order_relaxed);
    }
    bool huge = is_whole_huge(slice, slices);
    struct huge_request plain = huge ? (struct huge_request){0} : huge_make_plain(slice, slice + slices);
    struct purge_rest rest = purge_hold_rest(plain, slice + slices);
    begin_piece();
    arena_unlock();

    size_t piece = (size_t)slices << SLICE_BITS;
    huge_tell(plain);
    purge_rest(rest);
    bool purged = os_purge(arena_address(slice), piece);
    size_t gone = purged ? piece : purge_parts(arena_address(slice), piece);

    arena_lock();
    spans_let_go(slice, slices, !purged ? SPAN_KEPT : huge ? SPAN_HUGE : SPAN_CLEAN);
    end_piece();
    gone -= bits_min(gone, before);
    purge_count(gone);
    if (aged) {
        note_aged(freed, gone);
    }
    *bytes += gone;
    return slices;
}

uint32_t purge_due_piece(uint32_t most, size_t *bytes) {
    size_t before = *bytes;
    uint32_t slices = purge_is_due() || purge_is_under_way() ? purge_piece(most, purge_is_beyond(), bytes) : 0;
    note_early(*bytes - before);
    return slices;
}

/* Until there are not as many pieces as the caller has seen. A hook that takes part may wait for a lock of the program that the caller holds: false
 * after a second of that. */
static bool wait_for_change(uint32_t pieces) {
    enum { NAP_MS = 10, HOOK_MS = 1000 };
    struct patience patience = patience_begin();
    while (atomic_load_explicit(&purge.pieces, memory_order_relaxed) == pieces) {
        bool slept = os_wait_for(&purge.pieces, pieces, NAP_MS); /* returns at once when it has changed since */
        if (!memory_hooks_are_running()) {
            patience = patience_begin();
        } else if (patience_ended(&patience, slept, NAP_MS, HOOK_MS)) {
            return false;
        }
    }
    return true;
}

bool purge_wait(void) {
    arena_lock();
    uint32_t pieces = atomic_load_explicit(&purge.pieces, memory_order_relaxed);
    purge.awaiting += pieces != 0;
    arena_unlock();
    if (pieces == 0) {
        return false;
    }
    bool changed = wait_for_change(pieces);
    arena_lock();
    purge.awaiting--;
    arena_unlock();
    return changed;
}
