/* glibc has mallinfo2 since 2.33. A watcher that is built with an older one looks for it all the same, and finds it where it runs. */
#define _GNU_SOURCE
#include "libc_heap.h"

#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 33)
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
extern struct mallinfo2 mallinfo2(void) __attribute__((weak));

/* Whether no count of bytes of this process is above what 32 bits hold: its address space is not. */
static bool counts_fit(void) {
    char text[32];
    const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return strtoull(text, NULL, 10) <= UINT32_MAX / (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool old_read(struct libc_heap *heap) {
    if (!counts_fit())
        return false;
    const struct mallinfo said = mallinfo();
    *heap = (struct libc_heap){
        .held = (int64_t)(unsigned)said.arena + (int64_t)(unsigned)said.hblkhd,
        .free = (unsigned)said.fordblks,
        .top = (unsigned)said.keepcost,
        .mapped = (unsigned)said.hblkhd,
    };
    return true;
}
#endif

bool libc_heap_read(struct libc_heap *heap) {
#if !__GLIBC_PREREQ(2, 33)
    if (mallinfo2 == NULL)
        return old_read(heap);
#endif
    const struct mallinfo2 said = mallinfo2();
    *heap = (struct libc_heap){
        .held = (int64_t)(said.arena + said.hblkhd),
        .free = (int64_t)said.fordblks,
        .top = (int64_t)said.keepcost,
        .mapped = (int64_t)said.hblkhd,
    };
    return true;
}
