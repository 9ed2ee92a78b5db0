/* The limit on memory: the bytes that the heap holds, and the most that it may hold. Leaf above options.
 *
 * The counter `held` has each byte that may be in memory for a block: used spans without the purged pages of slabs, free spans without the
 * pages that were returned to the kernel, and mappings. A page that was never written counts. Bookkeeping does not, nor do pages beside the blocks of the
 * hardened heap, which nobody may touch.
 *
 *   limit_mib   the program's own limit: an allocation beyond it is refused
 *   group       the control group's limit: near it free memory is purged first, and nothing is refused
 *
 * An allocation charges its bytes before it maps memory (limit_take), and releases them if the kernel refuses. Threads that grow at the same time
 * therefore stay below limit_mib together. A page leaves the counter when its purge begins. */
#ifndef FREESTONE_LIMIT_H
#define FREESTONE_LIMIT_H

#include <stdatomic.h>

#include "options.h"

/* The value that stands for no limit. */
static const size_t LIMIT_NONE = SIZE_MAX;

/* Bytes held. Relaxed: each change is one addition, and nothing else is read by it. */
extern _Atomic size_t limit_held_bytes INTERNAL;

/* The group's limit in bytes, 0 as long as none is known; relaxed, as options are. */
extern _Atomic size_t limit_group_bytes INTERNAL;

/* Whether there is a limit at all. */
static inline bool limit_is_set(void) {
    return option_value(OPTION_LIMIT_MIB) != 0 || atomic_load_explicit(&limit_group_bytes, memory_order_relaxed) != 0;
}

static inline void limit_charge(size_t bytes) {
    atomic_fetch_add_explicit(&limit_held_bytes, bytes, memory_order_relaxed);
}

static inline void limit_release(size_t bytes) {
    atomic_fetch_sub_explicit(&limit_held_bytes, bytes, memory_order_relaxed);
}

/* The program's own limit, or LIMIT_NONE. */
static inline size_t limit_own(void) {
    size_t mib = option_value(OPTION_LIMIT_MIB);
    return mib == 0 ? LIMIT_NONE : mib << 20;
}

/* Charges the bytes. Returns false, and charges nothing, if that would exceed the program's own limit. */
bool limit_take(size_t bytes);

/* Returns the bytes that can be charged before the nearer of the two limits, or LIMIT_NONE. A budget of retained memory is at most half of it. */
size_t limit_room_left(void);
static inline size_t limit_room(void) { return likely(!limit_is_set()) ? LIMIT_NONE : limit_room_left(); }

/* Returns the bytes by which the program's own limit lacks room for `bytes` more, 0 if limit_take would charge them. */
size_t limit_lack_of_own(size_t bytes);

/* Returns the bytes to purge before `bytes` more are charged, 0 while there is room. The group's limit adds at most `bytes`, which bounds the work
 * of one call. */
size_t limit_lack(size_t bytes);

/* So many bytes were charged beyond the group's edge for which nothing went back. They add up; returns all of them when they are worth a look at slabs,
 * else 0. */
size_t limit_owe(size_t bytes);

/* The group's limit is read when the heap holds this many bytes, and again each time that it holds half as much more: it may change. */
extern _Atomic size_t limit_look_at INTERNAL;
static inline bool limit_look_is_due(void) {
    return unlikely(atomic_load_explicit(&limit_held_bytes, memory_order_relaxed) >=
                    atomic_load_explicit(&limit_look_at, memory_order_relaxed));
}

/* Begins a reading; returns false if another thread reads it. The end stores the limit: LIMIT_NONE for none, 0 if it could not be read. */
bool limit_begin_look(void);
void limit_end_look(size_t group);

/* Count an allocation that found less room than it needed, and one that failed for that. */
void limit_note_met(void);
void limit_note_refused(void);

struct limit_figures {
    size_t own, group; /* 0 without one */
    size_t held;
    size_t met, refused; /* numbers since the start */
};
void limit_figures(struct limit_figures *figures);

/* In the child of a fork, where no other thread reads it. */
void limit_after_fork(void);

#endif
