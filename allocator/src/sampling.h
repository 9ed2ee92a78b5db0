/* Sampling: one allocation in so many, by chance, comes to the slow path although a magazine has blocks. No instruction of the fast path is
 * for it: a magazine ends early, at a block chosen when it is loaded (magazine_plant). Whoever pops as far finds it empty, is served
 * elsewhere, and the rest of the magazine is there again.
 *
 * What the slow path serves without such an end is sampled by chance, one by one. What is freed and taken again above the early end
 * counts once: a program that goes to and fro at a magazine's top is sampled less than one in so many. */
#ifndef FREESTONE_SAMPLING_H
#define FREESTONE_SAMPLING_H

#include "bits.h"

struct cache_class;

/* From now on: before, nothing is sampled. */
void sampling_arm(void);

/* Whether the allocation that the calling thread is about to make is one of them; `class` may be CLASS_COUNT: none. Not inside (gate.h). */
bool sampling_is_due(unsigned class);

/* What is loaded with `top` gets its early end, perhaps; and has none any more. By slot_load and slot_unload. */
void sampling_sow(struct cache_class *magazines, void **top);
void sampling_lift(void **top);

#endif
