/* The arena's lock, which protects the spans, their ages, their bins and what is known of huge pages. Inside the arena. No system call
 * is made under it. */
#ifndef FREESTONE_ARENA_LOCK_H
#define FREESTONE_ARENA_LOCK_H

void arena_lock(void);
void arena_unlock(void);

#endif
