#include "cxx_operators.h"

_Atomic uint8_t cxx_maybe_replaced = 1;

/* Relaxed: every thread would store the same; NULL until one has looked. */
static _Atomic(void *) in_force[CXX_OPERATOR_COUNT];

static void look_up_all(void) {
    bool own = true;
    for (enum cxx_operator which = 0; which < CXX_OPERATOR_COUNT; which++) {
        void *found = cxx_find(which);
        own &= found == cxx_own(which);
        atomic_store_explicit(&in_force[which], found, memory_order_relaxed);
    }
    if (own) {
        atomic_store_explicit(&cxx_maybe_replaced, 0, memory_order_relaxed);
    }
}

OUT_OF_LINE void *cxx_in_force(enum cxx_operator which) {
    if (atomic_load_explicit(&in_force[CXX_OPERATOR_COUNT - 1], memory_order_relaxed) == NULL) {
        look_up_all();
    }
    void *found = atomic_load_explicit(&in_force[which], memory_order_relaxed);
    return found != NULL ? found : cxx_find(which); /* stored by another thread, and not seen here yet */
}
