/* The C++ operators that may throw, and all that delete, by their mangled names: the library links no C++ runtime.
 *
 * A failed `operator new` asks the program's new-handler and tries again; without one it throws std::bad_alloc. Both
 * come from the program's C++ runtime (cxx_runtime.h); this file is compiled with unwind tables so that an exception
 * passes through. The operators that must not throw are in api_cxx_nothrow.c.
 *
 * Each is weak, for the archive's sake: a program may have its own. Those that go by another call the one in force (cxx_operators.h). */
#include <stdlib.h>

#include "allocate.h"
#include "cxx_operators.h"
#include "cxx_runtime.h"

#define PUBLIC __attribute__((visibility("default"), weak))

/* A static link takes only the objects it needs, and a program that names nothing but operator new would get malloc
 * and free from libc: two heaps, and free() of the one called for blocks of the other. */
__attribute__((used)) static void *(*const with_malloc)(size_t) = malloc;

/* Slow half of operator new: the first try failed or was never made. */
static void *new_or_throw(size_t size, size_t alignment, enum made made, const void *caller) {
    for (;;) {
        void *block = cxx_try_new(size, alignment, made);
        if (block != NULL) {
            return block;
        }
        new_handler handler = cxx_new_handler(caller);
        if (handler == NULL || !bits_is_power_of_two(alignment)) { /* no handler makes room for such an alignment */
            cxx_throw_bad_alloc(caller);
        }
        handler(); /* frees something, throws, or does not return */
    }
}

__attribute__((noinline)) static void *new_slow(size_t size, enum made made, const void *caller) {
    return new_or_throw(size, 1, made, caller);
}

typedef void *operator_new(size_t size);
typedef void *operator_new_aligned(size_t size, size_t alignment);
typedef void operator_delete(void *block);
typedef void operator_delete_aligned(void *block, size_t alignment);

/* operator new(size_t). Its own name beside the public one: that may be the program's. */
static void *new_own(size_t size) {
    void *block = allocate_fast(size);
    return likely(block != NULL) ? block : new_slow(size, MADE_BY_NEW, CALLER);
}
PUBLIC void *_Znwm(size_t) __attribute__((alias("new_own")));

/* ... (size_t, std::align_val_t) */
static void *new_aligned_own(size_t size, size_t alignment) {
    return new_or_throw(size, alignment, MADE_BY_ALIGNED_NEW, CALLER);
}
PUBLIC void *_ZnwmSt11align_val_t(size_t, size_t) __attribute__((alias("new_aligned_own")));

/* operator delete(void*) */
static void delete_own(void *block) { release(block, MADE_BY_NEW); }
PUBLIC void _ZdlPv(void *) __attribute__((alias("delete_own")));

/* ... (void*, std::align_val_t) */
static void delete_aligned_own(void *block, size_t alignment) {
    (void)alignment;
    release(block, MADE_BY_ALIGNED_NEW);
}
PUBLIC void _ZdlPvSt11align_val_t(void *, size_t) __attribute__((alias("delete_aligned_own")));

/* -- by another ---------------------------------------------------------------------------------------------- */

static OUT_OF_LINE void *new_by_another(size_t size, const void *caller) {
    void *other = cxx_in_force(CXX_NEW);
    if (other != cxx_own(CXX_NEW)) {
        return ((operator_new *)other)(size);
    }
    return new_slow(size, MADE_BY_NEW_ARRAY, caller);
}

static OUT_OF_LINE void *new_aligned_by_another(size_t size, size_t alignment, const void *caller) {
    void *other = cxx_in_force(CXX_NEW_ALIGNED);
    return other != cxx_own(CXX_NEW_ALIGNED) ? ((operator_new_aligned *)other)(size, alignment)
                                             : new_or_throw(size, alignment, MADE_BY_ALIGNED_NEW_ARRAY, caller);
}

/* Where the operator in force is the library's after all, the block is one of the form that was called. */
static OUT_OF_LINE void delete_by(enum cxx_operator which, void *block, enum made made) {
    void *other = cxx_in_force(which);
    if (other != cxx_own(CXX_DELETE)) {
        ((operator_delete *)other)(block);
    } else {
        release(block, made);
    }
}

static OUT_OF_LINE void delete_aligned_by(enum cxx_operator which, void *block, size_t alignment, enum made made) {
    void *other = cxx_in_force(which);
    if (other != cxx_own(CXX_DELETE_ALIGNED)) {
        ((operator_delete_aligned *)other)(block, alignment);
    } else {
        release(block, made);
    }
}

/* The first call finds out that none is replaced: then the size is checked, as in those after it. */
static OUT_OF_LINE void delete_sized_by(enum cxx_operator which, void *block, size_t size, enum made made) {
    void *other = cxx_in_force(which);
    if (cxx_is_replaced()) {
        ((operator_delete *)other)(block);
    } else {
        release_sized(block, size, made);
    }
}

static OUT_OF_LINE void delete_sized_aligned_by(enum cxx_operator which, void *block, size_t size, size_t alignment,
                                                enum made made) {
    void *other = cxx_in_force(which);
    if (cxx_is_replaced()) {
        ((operator_delete_aligned *)other)(block, alignment);
    } else {
        release_sized(block, size, made);
    }
}

/* operator new[](size_t) */
static void *new_array_own(size_t size) {
    if (cxx_is_replaced()) {
        return new_by_another(size, CALLER);
    }
    void *block = allocate_fast(size);
    return likely(block != NULL) ? block : new_slow(size, MADE_BY_NEW_ARRAY, CALLER);
}
PUBLIC void *_Znam(size_t) __attribute__((alias("new_array_own")));

/* ... (size_t, std::align_val_t) */
static void *new_array_aligned_own(size_t size, size_t alignment) {
    return cxx_is_replaced() ? new_aligned_by_another(size, alignment, CALLER)
                             : new_or_throw(size, alignment, MADE_BY_ALIGNED_NEW_ARRAY, CALLER);
}
PUBLIC void *_ZnamSt11align_val_t(size_t, size_t) __attribute__((alias("new_array_aligned_own")));

/* operator delete[](void*) */
static void delete_array_own(void *block) {
    if (cxx_is_replaced()) {
        delete_by(CXX_DELETE, block, MADE_BY_NEW_ARRAY);
        return;
    }
    release(block, MADE_BY_NEW_ARRAY);
}
PUBLIC void _ZdaPv(void *) __attribute__((alias("delete_array_own")));

/* ... (void*, std::align_val_t) */
static void delete_array_aligned_own(void *block, size_t alignment) {
    if (cxx_is_replaced()) {
        delete_aligned_by(CXX_DELETE_ALIGNED, block, alignment, MADE_BY_ALIGNED_NEW_ARRAY);
        return;
    }
    release(block, MADE_BY_ALIGNED_NEW_ARRAY);
}
PUBLIC void _ZdaPvSt11align_val_t(void *, size_t) __attribute__((alias("delete_array_aligned_own")));

/* What is told a size, or that nothing may be thrown, goes by the form that is not. */
#define SIZED(name, which, made)                       \
    PUBLIC void name(void *block, size_t size) {       \
        if (cxx_is_replaced()) {                       \
            delete_sized_by(which, block, size, made); \
            return;                                    \
        }                                              \
        release_sized(block, size, made);              \
    }
SIZED(_ZdlPvm, CXX_DELETE, MADE_BY_NEW)
SIZED(_ZdaPvm, CXX_DELETE_ARRAY, MADE_BY_NEW_ARRAY)

#define NOTHROW(name, which, made)                   \
    PUBLIC void name(void *block, const void *tag) { \
        (void)tag;                                   \
        if (cxx_is_replaced()) {                     \
            delete_by(which, block, made);           \
            return;                                  \
        }                                            \
        release(block, made);                        \
    }
NOTHROW(_ZdlPvRKSt9nothrow_t, CXX_DELETE, MADE_BY_NEW)
NOTHROW(_ZdaPvRKSt9nothrow_t, CXX_DELETE_ARRAY, MADE_BY_NEW_ARRAY)

#define SIZED_ALIGNED(name, which, made)                                  \
    PUBLIC void name(void *block, size_t size, size_t alignment) {        \
        if (cxx_is_replaced()) {                                          \
            delete_sized_aligned_by(which, block, size, alignment, made); \
            return;                                                       \
        }                                                                 \
        release_sized(block, size, made);                                 \
    }
SIZED_ALIGNED(_ZdlPvmSt11align_val_t, CXX_DELETE_ALIGNED, MADE_BY_ALIGNED_NEW)
SIZED_ALIGNED(_ZdaPvmSt11align_val_t, CXX_DELETE_ARRAY_ALIGNED, MADE_BY_ALIGNED_NEW_ARRAY)

#define NOTHROW_ALIGNED(name, which, made)                             \
    PUBLIC void name(void *block, size_t alignment, const void *tag) { \
        (void)tag;                                                     \
        if (cxx_is_replaced()) {                                       \
            delete_aligned_by(which, block, alignment, made);          \
            return;                                                    \
        }                                                              \
        release(block, made);                                          \
    }
NOTHROW_ALIGNED(_ZdlPvSt11align_val_tRKSt9nothrow_t, CXX_DELETE_ALIGNED, MADE_BY_ALIGNED_NEW)
NOTHROW_ALIGNED(_ZdaPvSt11align_val_tRKSt9nothrow_t, CXX_DELETE_ARRAY_ALIGNED, MADE_BY_ALIGNED_NEW_ARRAY)

void *cxx_own(enum cxx_operator which) {
    static void *const own[CXX_OPERATOR_COUNT] = {
        [CXX_NEW] = (void *)new_own,
        [CXX_NEW_ARRAY] = (void *)new_array_own,
        [CXX_NEW_ALIGNED] = (void *)new_aligned_own,
        [CXX_NEW_ARRAY_ALIGNED] = (void *)new_array_aligned_own,
        [CXX_DELETE] = (void *)delete_own,
        [CXX_DELETE_ARRAY] = (void *)delete_array_own,
        [CXX_DELETE_ALIGNED] = (void *)delete_aligned_own,
        [CXX_DELETE_ARRAY_ALIGNED] = (void *)delete_array_aligned_own,
    };
    return own[which];
}
