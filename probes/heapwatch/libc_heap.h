/* What the C library says of its heap. */
#ifndef FREESTONE_HEAPWATCH_LIBC_HEAP_H
#define FREESTONE_HEAPWATCH_LIBC_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* In bytes: taken from the system, free of it, at the top of the main heap, in mappings of their own. */
struct libc_heap {
    int64_t held, free, top, mapped;
};

/* False where it cannot say: a C library before glibc 2.33 counts in 32 bits, and the process is larger than that. */
bool libc_heap_read(struct libc_heap *heap);

#endif
