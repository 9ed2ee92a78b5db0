/* The spans from the street's first slice to its front: split, joined and counted. Beside the arena, whose lock protects all of it but
 * what is said to be read without.
 *
 * Invariants of the descriptors:
 *   state != SPAN_UNUSED     exactly for the first slice of a span
 *   spans[last].first        is the first slice, for the last slice of every span
 *   two neighbours           are never free and of the same kind */
#ifndef FREESTONE_SPANS_H
#define FREESTONE_SPANS_H

#include "span.h"

void spans_open(void);

/* The first slice that was never handed out. */
uint32_t spans_front(void);

/* The highest that this has been. */
uint32_t spans_farthest(void);

/* Slices in used spans; may be read without the lock, and be a little old then. */
uint32_t spans_used(void);

/* The first slice from `slice` on whose address is a multiple of `alignment` slices: the base is one of a slice only. */
uint32_t spans_align(uint32_t slice, uint32_t alignment);

/* A used span of so many slices, so aligned, out of the free ones of one kind; 0 when none is long enough, or there is no room for it under the
 * limit (limit.h). Where the kind costs no memory the caller has charged the slices before, as for what comes from the front; where it does, what
 * that held is counted already. */
uint32_t spans_take(enum span_state state, uint32_t slices, uint32_t alignment);

/* The same from what was never handed out, as far as `usable`; *end is where it ends, or would. */
uint32_t spans_take_front(uint32_t slices, uint32_t alignment, uint32_t usable, uint32_t *end);

/* A used span, or the end of one, becomes free, joined with its free neighbours of that kind. In its slices `purged` bits of `clean` are
 * set, none where the kind is not dirty. The caller sees to what the limit counts. */
void spans_give_uncharged(uint32_t slice, uint32_t slices, enum span_state state, uint32_t purged);

/* Clears the bits of `clean` of so many slices; returns how many were set. */
uint32_t spans_forget_purged(uint32_t slice, uint32_t slices);

/* The first `slices` of a free span become nobody's (SPAN_PURGING): neither taken nor joined until they are let go. Returns how many of
 * their pages the kernel had back already. */
uint32_t spans_hold(uint32_t slice, uint32_t slices);

/* What was held, in whole or in part, becomes free. The parts are let go in the order of their addresses. */
void spans_let_go(uint32_t slice, uint32_t slices, enum span_state state);

/* What the kernel would not take is dirty again, and so may be asked for once more. One span of it; false when there is none. */
bool spans_revive(void);

/* A clean span is dirty again, with all its pages purged: mlockall may have brought them in. False when there is none. */
bool spans_doubt(void);

/* A used span becomes nobody's: for ever, unless it is let go. The caller sees to what the limit counts. */
void spans_hold_used(uint32_t slice);

/* Where the free span ends that begins at `slice`; `slice` where none does. */
uint32_t spans_end_of_free(uint32_t slice);

/* Takes the `more` slices that follow a used span into it: free ones, as far as there are, then from the front. False, and nothing has
 * changed, when they are not free or not usable. The caller has charged them; what some of them held is released. */
bool spans_extend(uint32_t slice, uint32_t more, uint32_t usable);

/* A used span is the first `slices` of itself; the rest is to be given. */
void spans_cut(uint32_t slice, uint32_t slices);

/* Where the free spans begin that end at the front and cost no memory, as far as the last `most` of them go; the front where there is none. With `kept`
 * also those that the kernel would not take: they can be unmapped all the same. */
uint32_t spans_clean_end(unsigned most, bool kept);

/* The front moves back to the first slice of the free span that ends with it, if that costs no memory, or was kept and may go as well. */
bool spans_retreat(bool kept);

/* The front moves to `front`: what lay before it and was usable is free and clean, what was not is nobody's for ever. */
void spans_skip(uint32_t usable, uint32_t front);

#endif
