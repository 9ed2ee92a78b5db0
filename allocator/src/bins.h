/* Free spans by kind and length: which fits best. Beside the arena, whose lock protects all of it. */
#ifndef FREESTONE_BINS_H
#define FREESTONE_BINS_H

#include "span.h"

/* A free span, described already, becomes one that can be found; and no longer. */
void bins_insert(uint32_t slice);
void bins_remove(uint32_t slice);

/* A free span of the kind with at least so many slices, or 0: the shortest of a few that are near. */
uint32_t bins_find(enum span_state state, uint32_t slices);

/* The same of a span that has room for so many slices from a multiple of `alignment` on, counted from `base` slices before slice 0: one that just has it is
 * looked for among a few first. */
uint32_t bins_find_aligned(enum span_state state, uint32_t slices, uint32_t alignment, uintptr_t base);

/* Free spans of the kind, and slices in them. */
uint32_t bins_spans(enum span_state state);
uint32_t bins_slices(enum span_state state);

/* Any free span of the kind, or 0. */
uint32_t bins_any(enum span_state state);

#endif
