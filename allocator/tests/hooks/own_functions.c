/* The program's own, in front of libc's. */
#include <stdarg.h>
#include <sys/mman.h>

#include "hooks.h"

int munmap(void *at, size_t bytes) { return hooks_munmap(at, bytes); }

int madvise(void *at, size_t bytes, int advice) { return hooks_madvise(at, bytes, advice); }

void *mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = va_arg(more, void *);
    va_end(more);
    return hooks_mremap(at, old_bytes, new_bytes, flags, to);
}
