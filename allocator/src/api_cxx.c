/* The C++ operators that may throw, and all that delete, by their mangled names: the library links no C++ runtime.
 *
 * A failed `operator new` asks the program's new-handler and tries again; without one it throws std::bad_alloc. Both
 * come from the program's C++ runtime (cxx_runtime.h); this file is compiled with unwind tables so that an exception
 * passes through. The operators that must not throw are in api_cxx_nothrow.c. */
#include <stdlib.h>

#include "allocate.h"
#include "cxx_runtime.h"

#define PUBLIC __attribute__((visibility("default")))

/* A static link takes only the objects it needs, and a program that names nothing but operator new would get malloc
 * and free from libc: two heaps, and free() of the one called for blocks of the other. */
__attribute__((used)) static void *(*const with_malloc)(size_t) = malloc;

/* Slow half of operator new: the first try failed or was never made. */
static void *new_or_throw(size_t size, size_t alignment, const void *caller) {
    for (;;) {
        void *block = cxx_try_new(size, alignment);
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

__attribute__((noinline)) static void *new_slow(size_t size, const void *caller) {
    return new_or_throw(size, 1, caller);
}

/* operator new(size_t), new[](size_t) */
PUBLIC void *_Znwm(size_t size) {
    void *block = allocate_fast(size);
    return likely(block != NULL) ? block : new_slow(size, CALLER);
}
PUBLIC void *_Znam(size_t) __attribute__((alias("_Znwm")));

/* ... (size_t, std::align_val_t) */
PUBLIC void *_ZnwmSt11align_val_t(size_t size, size_t alignment) { return new_or_throw(size, alignment, CALLER); }
PUBLIC void *_ZnamSt11align_val_t(size_t, size_t) __attribute__((alias("_ZnwmSt11align_val_t")));

/* operator delete(void*), delete[](void*) */
PUBLIC void _ZdlPv(void *block) { release(block); }
PUBLIC void _ZdaPv(void *) __attribute__((alias("_ZdlPv")));

/* ... (void*, std::nothrow_t const&) */
PUBLIC void _ZdlPvRKSt9nothrow_t(void *block, const void *tag) {
    (void)tag;
    release(block);
}
PUBLIC void _ZdaPvRKSt9nothrow_t(void *, const void *) __attribute__((alias("_ZdlPvRKSt9nothrow_t")));

/* ... (void*, size_t) */
PUBLIC void _ZdlPvm(void *block, size_t size) { release_sized(block, size); }
PUBLIC void _ZdaPvm(void *, size_t) __attribute__((alias("_ZdlPvm")));

/* ... (void*, std::align_val_t) */
PUBLIC void _ZdlPvSt11align_val_t(void *block, size_t alignment) {
    (void)alignment;
    release(block);
}
PUBLIC void _ZdaPvSt11align_val_t(void *, size_t) __attribute__((alias("_ZdlPvSt11align_val_t")));

/* ... (void*, std::align_val_t, std::nothrow_t const&) */
PUBLIC void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment, const void *tag) {
    (void)alignment;
    (void)tag;
    release(block);
}
PUBLIC void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *, size_t, const void *)
    __attribute__((alias("_ZdlPvSt11align_val_tRKSt9nothrow_t")));

/* ... (void*, size_t, std::align_val_t) */
PUBLIC void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t alignment) {
    (void)alignment;
    release_sized(block, size);
}
PUBLIC void _ZdaPvmSt11align_val_t(void *, size_t, size_t) __attribute__((alias("_ZdlPvmSt11align_val_t")));
