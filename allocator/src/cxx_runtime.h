/* What the C++ operators need of the program's C++ runtime. Two files implement it: cxx_runtime_loaded.c for the shared
 * library, which may be loaded into a program without C++, and cxx_runtime_linked.c for the static one, whose operators
 * are only ever linked into a program with C++. */
#ifndef FREESTONE_CXX_RUNTIME_H
#define FREESTONE_CXX_RUNTIME_H

#include "allocate.h"

typedef void (*new_handler)(void);

#define CALLER __builtin_return_address(0)

/* `caller` is an address in the code that called the operator: there can be several runtimes, as in a plugin that brings its own
 * (-static-libstdc++), and an exception of another's is one that nobody catches. */

/* std::get_new_handler(); NULL where there is none. */
new_handler cxx_new_handler(const void *caller);

/* Throws std::bad_alloc. */
_Noreturn void cxx_throw_bad_alloc(const void *caller);

/* The function of that name in the runtime, nowhere else; NULL where there is none. Only in the shared library. */
void *cxx_runtime_function(const char *name, const void *caller);

/* One try, without a handler. `alignment` 1 asks for the default. */
static inline void *cxx_try_new(size_t size, size_t alignment, enum made made) {
    if (alignment > 1) {
        return bits_is_power_of_two(alignment) ? allocate_aligned(alignment, size, made) : NULL;
    }
    void *block = allocate_fast(size);
    return likely(block != NULL) ? block : allocate_slow_as(size, made);
}

#endif
