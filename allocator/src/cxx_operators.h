/* The C++ operators that others go by. A program may replace some of them alone: by the standard the array forms, and those that are told
 * a size or must not throw, then call the program's. Its definition stands before the library's, for everybody but the library. Two files
 * find it: cxx_operators_loaded.c and cxx_operators_linked.c. */
#ifndef FREESTONE_CXX_OPERATORS_H
#define FREESTONE_CXX_OPERATORS_H

#include <stdatomic.h>

#include "bits.h"

/* name, mangled name */
#define CXX_OPERATORS(each)                                                                           \
    each(NEW, _Znwm) each(NEW_ARRAY, _Znam) each(NEW_ALIGNED, _ZnwmSt11align_val_t)                   \
        each(NEW_ARRAY_ALIGNED, _ZnamSt11align_val_t) each(DELETE, _ZdlPv) each(DELETE_ARRAY, _ZdaPv) \
            each(DELETE_ALIGNED, _ZdlPvSt11align_val_t) each(DELETE_ARRAY_ALIGNED, _ZdaPvSt11align_val_t)

#define CXX_MEMBER(name, mangled) CXX_##name,
enum cxx_operator { CXX_OPERATORS(CXX_MEMBER) CXX_OPERATOR_COUNT };

/* 0 once all in force are known to be the library's. Relaxed: who does not see it yet asks, and is answered the same. */
extern _Atomic uint8_t cxx_maybe_replaced INTERNAL;

static inline bool cxx_is_replaced(void) {
    return unlikely(atomic_load_explicit(&cxx_maybe_replaced, memory_order_relaxed) != 0);
}

/* The operator in force, by where the files differ, and the library's own. Neither is NULL. */
void *cxx_in_force(enum cxx_operator which) INTERNAL;
void *cxx_own(enum cxx_operator which) INTERNAL;

/* Told by the library's constructor once it has written what is SEALED: from then on another thread may open those pages. Until then operators are
 * looked up at each call. The shared library alone. */
void cxx_may_keep(void) INTERNAL;

#endif
