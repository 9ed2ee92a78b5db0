/* A campaign: every planted fault, looked for from several seeds on; a table of how many steps that took. */
#ifndef FREESTONE_SIMULATOR_CAMPAIGN_H
#define FREESTONE_SIMULATOR_CAMPAIGN_H

#include <stddef.h>
#include <stdint.h>

/* Every fault, or the one that is planted already. From `seeds` places on, `runs` scripts each at most. Not 0 when a fault was not found from each of them, or something without. */
int campaign(uint64_t seed, unsigned seeds, unsigned runs, size_t steps);

#endif
