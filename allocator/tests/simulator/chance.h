/* Scripts by chance: one seed, one script. Each has a character of its own: how many threads, which sizes, how often somebody is
 * interrupted, how much forks, ends, refusals and the keeper have to do with it. */
#ifndef FREESTONE_SIMULATOR_CHANCE_H
#define FREESTONE_SIMULATOR_CHANCE_H

#include "script.h"

void chance_script(struct script *script, uint64_t seed, size_t steps);

#endif
