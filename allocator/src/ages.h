/* The dirty spans in the order in which they became so. Beside the arena, whose lock protects all of it but what is said to be read
 * without. */
#ifndef FREESTONE_AGES_H
#define FREESTONE_AGES_H

#include "span.h"

/* A dirty span becomes the youngest. Its stamp is set. */
void ages_append(uint32_t slice);
void ages_remove(uint32_t slice);

/* `rest`, shorter by `less` slices, of which `purged` pages were purged, takes the place of `slice`: what is left of a span is as old as
 * the span was. */
void ages_replace(uint32_t slice, uint32_t rest, uint32_t less, uint32_t purged);

/* The oldest, or 0; the stamp of the oldest; and slices in dirty spans: may be read without the lock, and be a little old then. */
uint32_t ages_oldest(void);
uint64_t ages_oldest_stamp(void);
uint32_t ages_slices(void);

/* The same in bytes, less the pages that the kernel has back: the most that may be in memory. */
size_t ages_bytes(void);

#endif
