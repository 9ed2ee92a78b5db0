/* The C++ operators new that must not throw, in the shared library only.
 *
 * A new-handler may throw, and these have to answer that with NULL, which takes a catch: C has none. So where a handler
 * is set and the first try fails, the C++ runtime's own operator takes over, which calls our throwing one inside a try.
 * In a static link that operator is the only one; it serves from us all the same. The runtime's takes over as well where the program has replaced
 * the operator that it goes by, which may throw. */
#include <stdlib.h>

#include "cxx_operators.h"
#include "cxx_runtime.h"

#define PUBLIC __attribute__((visibility("default")))

/* ... (size_t, std::nothrow_t const&) */
typedef void *(*operator_new)(size_t, const void *);
/* ... (size_t, std::align_val_t, std::nothrow_t const&) */
typedef void *(*aligned_operator_new)(size_t, size_t, const void *);

/* The C++ runtime's operator of that name, NULL when there is no handler to call. It is looked up in the runtime itself:
 * the next library in line may be another allocator, whose blocks would be foreign here. */
static void *next(const char *name, const void *caller) {
    return cxx_new_handler(caller) == NULL ? NULL : cxx_runtime_function(name, caller);
}

static bool is_own(enum cxx_operator which) { return cxx_in_force(which) == cxx_own(which); }

/* What is in force for the form, in the end: an array's goes by the plain one unless it is the program's itself. */
static enum cxx_operator base_of(enum cxx_operator which) {
    return which == CXX_NEW_ARRAY && is_own(which)           ? CXX_NEW
           : which == CXX_NEW_ARRAY_ALIGNED && is_own(which) ? CXX_NEW_ALIGNED
                                                             : which;
}

static void *take(size_t size, const void *nothrow, enum cxx_operator which, const char *name, const void *caller) {
    if (cxx_is_replaced() && !is_own(base_of(which))) {
        operator_new runtimes = (operator_new)cxx_runtime_function(name, caller);
        return runtimes != NULL ? runtimes(size, nothrow) : ((void *(*)(size_t))cxx_in_force(base_of(which)))(size);
    }
    void *block = cxx_try_new(size, 1, which == CXX_NEW ? MADE_BY_NEW : MADE_BY_NEW_ARRAY);
    if (likely(block != NULL)) {
        return block;
    }
    operator_new other = (operator_new)next(name, caller);
    return other == NULL ? NULL : other(size, nothrow);
}

static void *take_aligned(size_t size, size_t alignment, const void *nothrow, enum cxx_operator which, const char *name,
                          const void *caller) {
    if (cxx_is_replaced() && !is_own(base_of(which))) {
        aligned_operator_new runtimes = (aligned_operator_new)cxx_runtime_function(name, caller);
        return runtimes != NULL ? runtimes(size, alignment, nothrow)
                                : ((void *(*)(size_t, size_t))cxx_in_force(base_of(which)))(size, alignment);
    }
    void *block =
        cxx_try_new(size, alignment, which == CXX_NEW_ALIGNED ? MADE_BY_ALIGNED_NEW : MADE_BY_ALIGNED_NEW_ARRAY);
    if (likely(block != NULL)) {
        return block;
    }
    aligned_operator_new other = (aligned_operator_new)next(name, caller);
    return other == NULL ? NULL : other(size, alignment, nothrow);
}

#define NOTHROW(name, which) \
    PUBLIC void *name(size_t size, const void *nothrow) { return take(size, nothrow, which, #name, CALLER); }
NOTHROW(_ZnwmRKSt9nothrow_t, CXX_NEW)
NOTHROW(_ZnamRKSt9nothrow_t, CXX_NEW_ARRAY)

#define NOTHROW_ALIGNED(name, which)                                         \
    PUBLIC void *name(size_t size, size_t alignment, const void *nothrow) {  \
        return take_aligned(size, alignment, nothrow, which, #name, CALLER); \
    }
NOTHROW_ALIGNED(_ZnwmSt11align_val_tRKSt9nothrow_t, CXX_NEW_ALIGNED)
NOTHROW_ALIGNED(_ZnamSt11align_val_tRKSt9nothrow_t, CXX_NEW_ARRAY_ALIGNED)
