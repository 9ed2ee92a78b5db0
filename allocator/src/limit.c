#include "limit.h"

_Atomic size_t limit_held_bytes;
_Atomic size_t limit_group_bytes;

/* For a smaller heap the system calls do not pay. */
enum { LOOK_FROM = 16 << 20 };
_Atomic size_t limit_look_at = LOOK_FROM;

/* Relaxed: numbers that stand for themselves. */
static struct {
    _Atomic size_t met, refused;
} limit;

/* One eighth of a group's limit is left to code, stacks, other processes and the page cache. */
enum { GROUP_OTHERS = 8 };

static size_t held(void) { return atomic_load_explicit(&limit_held_bytes, memory_order_relaxed); }

/* The heap is near the group's limit beyond this. */
static size_t group_edge(void) {
    size_t group = atomic_load_explicit(&limit_group_bytes, memory_order_relaxed);
    return group == 0 ? LIMIT_NONE : group - group / GROUP_OTHERS;
}

bool limit_take(size_t bytes) {
    size_t most = limit_own();
    if (likely(most == LIMIT_NONE)) {
        limit_charge(bytes);
        return true;
    }
    size_t now = held();
    do {
        if (now > most || bytes > most - now) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&limit_held_bytes, &now, now + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static size_t room_below(size_t most) {
    size_t now = held();
    return most == LIMIT_NONE ? LIMIT_NONE : most - bits_min(most, now);
}

size_t limit_room_left(void) {
    enum {
        LEAST_PART = 32
    }; /* of the group's limit: with nothing retained each page that is freed would be purged, and faulted again */
    size_t group = atomic_load_explicit(&limit_group_bytes, memory_order_relaxed);
    return bits_min(room_below(limit_own()), bits_max(room_below(group_edge()), group / LEAST_PART));
}

size_t limit_lack_of_own(size_t bytes) {
    size_t own = limit_own(), now = held();
    return own != LIMIT_NONE && now + bytes > own ? now + bytes - own : 0;
}

size_t limit_lack(size_t bytes) {
    size_t lack = limit_lack_of_own(bytes);
    if (option_value(OPTION_RETAIN_MIB) == RETAIN_ALL_MIB) { /* touched memory is to stay */
        return lack;
    }
    size_t room = room_below(group_edge());
    return bits_max(lack, bytes - bits_min(bytes, room));
}

size_t limit_owe(size_t bytes) {
    enum { WORTH_A_LOOK = 1 << 20 };
    static _Atomic size_t owed; /* relaxed: each byte is returned once, to any thread */
    if (atomic_fetch_add_explicit(&owed, bytes, memory_order_relaxed) + bytes < WORTH_A_LOOK) {
        return 0;
    }
    return atomic_exchange_explicit(&owed, 0, memory_order_relaxed);
}

/* limit_look_at is NEVER while a thread reads the limit, so one thread reads at a time. */
static const size_t NEVER = SIZE_MAX;

bool limit_begin_look(void) { return atomic_exchange_explicit(&limit_look_at, NEVER, memory_order_acquire) != NEVER; }

void limit_end_look(size_t group) {
    if (group != 0) {
        atomic_store_explicit(&limit_group_bytes, group == LIMIT_NONE ? 0 : group, memory_order_relaxed);
    }
    size_t now = bits_max(held(), LOOK_FROM);
    /* release, with the acquire above: the next reader uses the same buffers */
    atomic_store_explicit(&limit_look_at, now + now / 2, memory_order_release);
}

void limit_after_fork(void) {
    size_t never = NEVER;
    (void)atomic_compare_exchange_strong_explicit(&limit_look_at, &never, LOOK_FROM, memory_order_relaxed,
                                                  memory_order_relaxed);
}

void limit_note_met(void) { atomic_fetch_add_explicit(&limit.met, 1, memory_order_relaxed); }

void limit_note_refused(void) {
    if (limit_own() != LIMIT_NONE) {
        atomic_fetch_add_explicit(&limit.refused, 1, memory_order_relaxed);
    }
}

void limit_figures(struct limit_figures *figures) {
    size_t own = limit_own();
    *figures = (struct limit_figures){
        .own = own == LIMIT_NONE ? 0 : own,
        .group = atomic_load_explicit(&limit_group_bytes, memory_order_relaxed),
        .held = held(),
        .met = atomic_load_explicit(&limit.met, memory_order_relaxed),
        .refused = atomic_load_explicit(&limit.refused, memory_order_relaxed),
    };
}
