/* The C++ operators, by their mangled names: the library links no C++ runtime.
 *
 * A failed `operator new` asks the program's new-handler and tries again; without one it throws std::bad_alloc. Both
 * come from the C++ runtime the program has loaded, if it has one; this file is compiled with unwind tables so that
 * the exception passes through. */
#include <stdlib.h>

#include "allocate.h"
#include "message.h"

#define PUBLIC __attribute__((visibility("default")))

typedef void (*new_handler)(void);

/* std::get_new_handler() and std::__throw_bad_alloc(), of libstdc++ or libc++; absent in a program without C++. */
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern _Noreturn void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

/* `alignment` 1 asks for the default. */
static void *try_new(size_t size, size_t alignment) {
    if (alignment > 1) {
        return bits_is_power_of_two(alignment) ? allocate_aligned(alignment, size) : NULL;
    }
    void *block = allocate_fast(size);
    return block != NULL ? block : allocate_slow(size);
}

static new_handler current_handler(void) { return _ZSt15get_new_handlerv != NULL ? _ZSt15get_new_handlerv() : NULL; }

static _Noreturn void throw_bad_alloc(void) {
    if (_ZSt17__throw_bad_allocv != NULL) {
        _ZSt17__throw_bad_allocv();
    }
    struct message message = {0};
    message_text(&message, "out of memory in operator new, and no C++ runtime to throw std::bad_alloc");
    message_print(&message);
    abort();
}

/* Slow half of operator new: the first try failed or was never made. */
static void *new_or_throw(size_t size, size_t alignment) {
    for (;;) {
        void *block = try_new(size, alignment);
        if (block != NULL) {
            return block;
        }
        new_handler handler = current_handler();
        if (handler == NULL) {
            throw_bad_alloc();
        }
        handler(); /* frees something, throws, or does not return */
    }
}

/* The same for the nothrow operators. A handler that throws ends the program, since these must not let it pass. */
__attribute__((nothrow)) static void *new_or_null(size_t size, size_t alignment) {
    for (;;) {
        void *block = try_new(size, alignment);
        new_handler handler = block != NULL ? NULL : current_handler();
        if (handler == NULL) {
            return block;
        }
        handler();
    }
}

__attribute__((noinline)) static void *new_slow(size_t size) { return new_or_throw(size, 1); }

static inline void release(void *block) {
    if (unlikely(!release_fast(block))) {
        release_slow(block);
    }
}

static inline void release_sized(void *block, size_t size) {
    if (unlikely(!release_sized_fast(block, size))) {
        release_sized_slow(block, size);
    }
}

/* operator new(size_t), new[](size_t) */
PUBLIC void *_Znwm(size_t size) {
    void *block = allocate_fast(size);
    return likely(block != NULL) ? block : new_slow(size);
}
PUBLIC void *_Znam(size_t) __attribute__((alias("_Znwm")));

/* ... (size_t, std::nothrow_t const&) */
PUBLIC void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag) {
    (void)tag;
    return new_or_null(size, 1);
}
PUBLIC void *_ZnamRKSt9nothrow_t(size_t, const void *) __attribute__((alias("_ZnwmRKSt9nothrow_t")));

/* ... (size_t, std::align_val_t) */
PUBLIC void *_ZnwmSt11align_val_t(size_t size, size_t alignment) { return new_or_throw(size, alignment); }
PUBLIC void *_ZnamSt11align_val_t(size_t, size_t) __attribute__((alias("_ZnwmSt11align_val_t")));

/* ... (size_t, std::align_val_t, std::nothrow_t const&) */
PUBLIC void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *tag) {
    (void)tag;
    return new_or_null(size, alignment);
}
PUBLIC void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *)
    __attribute__((alias("_ZnwmSt11align_val_tRKSt9nothrow_t")));

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
