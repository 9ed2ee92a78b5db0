/* What the keeper does on its looks round, piece by piece; beside the thread caches. */
#ifndef FREESTONE_KEEPING_H
#define FREESTONE_KEEPING_H

#include "keeper.h"

/* Gives everything back that nobody uses, also what is kept for reuse: a program has asked for it. Returns the bytes. */
size_t keeping_purge(void);

/* To be called, by who is not inside and holds no lock, behind every slow path that may have made memory free. */
static inline void thread_serve_wishes(void) {
    if (keeper_is_wished()) {
        keeper_serve();
    }
}

#endif
