/* A script that fails, made as short as it still fails alike: steps left out in ever smaller pieces (Zeller and Hildebrandt, "Simplifying
 * and isolating failure-inducing input", 2002), then each step made simpler. */
#ifndef FREESTONE_SIMULATOR_SHRINK_H
#define FREESTONE_SIMULATOR_SHRINK_H

#include "run.h"

/* Plays it again and again, at most so often; `failed` is what became of it, and then of what is left of it. */
void shrink(struct script *script, struct outcome *failed, unsigned tries);

#endif
