/* The keeper: a thread of the library's own that gives memory back while the program idles. Leaf above os.
 *
 * There is none until a wish for it was made, which is when so much freed memory lies about that returning it matters,
 * and none any more when a look round finds nothing left to return. Rooms below say that there may be work
 * (keeper_wish); the slow paths above, once no lock is held, start the thread (keeper_serve).
 *
 * No wish is lost: a wish is written before it is asked whether the keeper lives, and the keeper says that it is about
 * to end before it looks for a wish for the last time; both in one order for all threads (seq_cst), so one of the two
 * sees the other. */
#ifndef FREESTONE_KEEPER_H
#define FREESTONE_KEEPER_H

#include <stdatomic.h>

#include "bits.h"

/* A look round: returns what is given back, and says in *more whether waiting longer may find more. */
typedef size_t keeper_round(bool *more);

extern _Atomic uint32_t keeper_wished INTERNAL;

/* There is, or soon will be, memory worth returning. */
static inline void keeper_wish(void) {
    if (atomic_load_explicit(&keeper_wished, memory_order_relaxed) == 0) {
        atomic_store_explicit(&keeper_wished, 1, memory_order_seq_cst);
    }
}

/* Whether a wish is open: then keeper_serve is to be called. Relaxed: a thread sees its own wish. */
static inline bool keeper_is_wished(void) {
    return unlikely(atomic_load_explicit(&keeper_wished, memory_order_relaxed) != 0);
}

/* Looks whether the program was started in a sandbox. Called once, at the first allocation. */
void keeper_open(void);

/* Starts the keeper unless it lives; it calls `round` now and then. Called without any lock. */
void keeper_serve(keeper_round *round);

/* In the child of a fork, where the keeper does not exist. */
void keeper_after_fork(void);

#endif
