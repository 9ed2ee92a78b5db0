/* The linker has put the program's definitions in the place of the archive's, which are weak. */
#include "cxx_operators.h"

#define DECLARE(name, mangled) extern void mangled(void);
CXX_OPERATORS(DECLARE)

#define ADDRESS(name, mangled) [CXX_##name] = (void *)(mangled),
static void *const in_force[CXX_OPERATOR_COUNT] = {CXX_OPERATORS(ADDRESS)};

_Atomic uint8_t cxx_maybe_replaced = 1;

OUT_OF_LINE void *cxx_in_force(enum cxx_operator which) {
    bool own = true;
    for (enum cxx_operator any = 0; any < CXX_OPERATOR_COUNT; any++) {
        own &= in_force[any] == cxx_own(any);
    }
    if (own) {
        atomic_store_explicit(&cxx_maybe_replaced, 0, memory_order_relaxed);
    }
    return in_force[which];
}
