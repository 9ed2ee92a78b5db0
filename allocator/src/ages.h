/* The dirty spans in the order in which they became so. Beside the arena, whose lock protects all of it but what is said to be read
 * without. */
#ifndef FREESTONE_AGES_H
#define FREESTONE_AGES_H

#include "span.h"

/* A dirty span becomes the youngest. Its stamp is set. */
void ages_append(uint32_t slice);
void ages_remove(uint32_t slice);

/* A dirty span has become `less` slices shorter, at its end. */
void ages_shorten(uint32_t less);

/* `rest`, `less` slices shorter, takes the place of `slice`: what is left of a span is as old as the span was. */
void ages_replace(uint32_t slice, uint32_t rest, uint32_t less);

/* The oldest, or 0; slices in dirty spans; and the stamp of the oldest: may be read without the lock, and be a little old then. */
uint32_t ages_oldest(void);
uint32_t ages_slices(void);
uint32_t ages_oldest_stamp(void);

#endif
