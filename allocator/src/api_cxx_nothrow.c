/* The C++ operators new that must not throw, in the shared library only.
 *
 * A new-handler may throw, and these have to answer that with NULL, which takes a catch: C has none. So where a handler
 * is set and the first try fails, the C++ runtime's own operator takes over, which calls our throwing one inside a try.
 * In a static link that operator is the only one; it serves from us all the same. */
#include <stdlib.h>

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

static void *take(size_t size, const void *nothrow, const char *name, const void *caller) {
    void *block = cxx_try_new(size, 1);
    if (likely(block != NULL)) {
        return block;
    }
    operator_new other = (operator_new)next(name, caller);
    return other == NULL ? NULL : other(size, nothrow);
}

static void *take_aligned(size_t size, size_t alignment, const void *nothrow, const char *name, const void *caller) {
    void *block = cxx_try_new(size, alignment);
    if (likely(block != NULL)) {
        return block;
    }
    aligned_operator_new other = (aligned_operator_new)next(name, caller);
    return other == NULL ? NULL : other(size, alignment, nothrow);
}

PUBLIC void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow) {
    return take(size, nothrow, "_ZnwmRKSt9nothrow_t", CALLER);
}

PUBLIC void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow) {
    return take(size, nothrow, "_ZnamRKSt9nothrow_t", CALLER);
}

PUBLIC void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *nothrow) {
    return take_aligned(size, alignment, nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t", CALLER);
}

PUBLIC void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *nothrow) {
    return take_aligned(size, alignment, nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t", CALLER);
}
