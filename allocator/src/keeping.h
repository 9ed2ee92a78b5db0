/* What the keeper does on its looks round, piece by piece; beside the thread caches. */
#ifndef FREESTONE_KEEPING_H
#define FREESTONE_KEEPING_H

#include "keeper.h"

/* Gives everything back that nobody uses, also what is kept for reuse: a program has asked for it. Returns the bytes. */
size_t keeping_purge(void);

/* The whole look, and only what is due of freed spans. */
size_t keeping_look(bool *more);
size_t keeping_hurry(void);

/* Summons a thread; false when none has answered since the last. By the keeper. */
bool keeping_summon(void);

/* To be called, by who is not inside and holds no lock, behind every slow path that may have made memory free. */
static inline void thread_serve_wishes(void) {
    if (keeper_is_wished()) {
        keeper_serve();
    }
}

#endif
