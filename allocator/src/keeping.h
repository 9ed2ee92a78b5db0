/* What the keeper does on its looks round, piece by piece; beside the thread caches. */
#ifndef FREESTONE_KEEPING_H
#define FREESTONE_KEEPING_H

#include "keeper.h"

/* Gives everything back that nobody uses, also what is kept for reuse, until it is enough: a program has asked for it. Returns the bytes. */
size_t keeping_purge(bool (*is_enough)(void));
static inline bool keeping_all_of_it(void) { return false; }

/* Gives back a part of what has been free for long, in the place of the keeper, if that is overdue. By who is about to have it leave, and is not
 * inside. */
void keeping_catch_up(void);

/* To be called, by who is not inside and holds no lock, behind every slow path that may have made memory free. */
static inline void thread_serve_wishes(void) {
    if (keeper_is_wished()) {
        keeper_serve();
    }
}

#endif
