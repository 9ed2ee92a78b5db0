/* One block of 64, by its address: who asked for it, and how much was asked for by then. */
#ifndef FREESTONE_HEAPWATCH_SAMPLED_H
#define FREESTONE_HEAPWATCH_SAMPLED_H

#include "tally.h"

void sampled_born(const void *block, const struct tally *tally);
void sampled_gone(const void *block, struct tally *tally);

#endif
