/* Giving freed memory back to the kernel: what is due, and in which pieces. Beside the arena; every function takes its lock, and drops
 * it while the kernel works.
 *
 * Freed spans are kept for reuse (dirty) as long as they are within a budget and not too old. What is due beyond that is the keeper's
 * work, piece by piece; where there is no keeper, each call that gives memory back does a share of it. */
#ifndef FREESTONE_PURGE_H
#define FREESTONE_PURGE_H

#include "huge.h"

/* Whether more is dirty than may be, or for longer; asked without the lock. */
bool purge_is_beyond(void);

/* The same, or something is owed. */
bool purge_is_due(void);

/* Whether the oldest span is what is left of one that was begun: it goes as a whole, since it was kept as one. Asked without the lock. */
bool purge_is_under_way(void);

/* A piece of the oldest dirty span, CHUNK_SLICES at most. Returns its slices, 0 when there is none or the thread may not purge now, and adds to *bytes what the kernel took. What it
 * did not take (locked memory) is kept: it is free, and in nobody's way to the rest. `begins`: what is left of the span is under way then. */
uint32_t purge_piece(uint32_t most, bool begins, size_t *bytes);

/* The same of what is due; 0 when nothing is. */
uint32_t purge_due_piece(uint32_t most, size_t *bytes);

/* The free part of a huge page behind `slice`, which is a span's first or the front: a write before it may have made it resident. The caller holds it
 * under the arena's lock, together with the request that makes the chunk plain, and purges it after that request. None if the chunk was plain. */
struct purge_rest {
    uint32_t slice, slices; /* none when `slices` is 0 */
};
struct purge_rest purge_hold_rest(struct huge_request plain, uint32_t slice);
void purge_rest(struct purge_rest rest);

/* What was kept is asked for again, once something was given back since, or `all` the same. */
void purge_revive(bool all);
void purge_expect(void);

/* What is clean becomes dirty, so that it is purged once more. */
void purge_doubt(void);

/* So many bytes more are due now, as far as that much is dirty. */
void purge_owe(size_t bytes);

/* Fresh memory is taken, since no retained span is long enough: perhaps pages that were purged too early. The caller does not hold the
 * arena's lock. */
void purge_regret(size_t bytes);

/* Bytes purged since the start. */
uint64_t purge_total(void);
void purge_count(size_t bytes);

/* Waits until no piece is being purged that was when the caller looked. False when there was none, or a hook takes too long. */
bool purge_wait(void);

#endif
