/* What a thread leaves at its end for the next. */
#ifndef FREESTONE_LEFT_H
#define FREESTONE_LEFT_H

#include "thread_cache.h"

/* Makes the cache of a thread that ends fit to be left: what is too much of it is flushed. Returns the bytes of blocks in it, or LEFT_NOT where it
 * is not to be left: it is as it was. By the thread, inside. */
#define LEFT_NOT SIZE_MAX
size_t left_prepare(struct thread_cache *cache);

/* Leaves it; false when there is no place. With the registry's lock. */
bool left_put(struct thread_cache *cache, size_t bytes);

/* The last one that was left of that heap, which is the caller's then; NULL when there is none. With the registry's lock. */
struct thread_cache *left_take(const struct heap *heap);

/* The one in that place, from 0 on; NULL behind the last. With the registry's lock. */
const struct thread_cache *left_at(uint32_t place);

/* Empties one: of those that nobody has taken for two of the keeper's looks, or of all. False when there is none. The caller is inside. */
bool left_empty_one(bool all);

/* The keeper has come round again. It is inside. */
void left_look(void);

#endif
