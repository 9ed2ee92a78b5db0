#include "os.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MREMAP_MAYMOVE
#define MREMAP_MAYMOVE 1
#endif

size_t os_page_bytes(void) {
    static size_t cached; /* every thread would store the same value */
    size_t bytes = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (bytes == 0) {
        bytes = (size_t)getauxval(AT_PAGESZ);
        if (bytes == 0) {
            bytes = 4096;
        }
        __atomic_store_n(&cached, bytes, __ATOMIC_RELAXED);
    }
    return bytes;
}

/* A system call that leaves errno alone: a successful malloc or free must not change it. Returns -errno on failure. */
static long kernel(long number, long a, long b, long c, long d, long e) {
    int saved = errno;
    long result = syscall(number, a, b, c, d, e, 0L);
    if (result == -1) {
        result = -errno;
    }
    errno = saved;
    return result;
}

/* Only mmap and mremap return addresses; the last page of the address space is never one. */
static void *address_or_null(long result) { return result < 0 && result > -4096 ? NULL : (void *)result; }

static void *map_anywhere(size_t bytes, int protection, int flags) {
    return address_or_null(kernel(SYS_mmap, 0, (long)bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1));
}

/* Maps `bytes` at a multiple of `alignment`: more is mapped where the kernel's choice does not fit, and the ends are
 * given back. */
static void *map_aligned(size_t bytes, size_t alignment, int protection, int flags) {
    void *at = map_anywhere(bytes, protection, flags);
    if (at == NULL || ((uintptr_t)at & (alignment - 1)) == 0) {
        return at;
    }
    os_unmap(at, bytes);
    size_t slack = alignment - os_page_bytes();
    if (bytes + slack < bytes) {
        return NULL;
    }
    at = map_anywhere(bytes + slack, protection, flags);
    if (at == NULL) {
        return NULL;
    }
    uintptr_t start = (uintptr_t)at;
    uintptr_t fit = bits_round_up(start, alignment);
    size_t head = fit - start;
    if (head > 0) {
        os_unmap(at, head);
    }
    if (slack > head) {
        os_unmap((void *)(fit + bytes), slack - head);
    }
    return (void *)fit;
}

void *os_reserve(size_t bytes, size_t alignment) { return map_aligned(bytes, alignment, PROT_NONE, MAP_NORESERVE); }

bool os_commit(void *at, size_t bytes) {
    return kernel(SYS_mprotect, (long)at, (long)bytes, PROT_READ | PROT_WRITE, 0, 0) == 0;
}

void *os_map(size_t bytes, size_t alignment) { return map_aligned(bytes, alignment, PROT_READ | PROT_WRITE, 0); }

void os_unmap(void *at, size_t bytes) {
    if (kernel(SYS_munmap, (long)at, (long)bytes, 0, 0, 0) != 0) {
        (void)os_purge(at, bytes); /* too many mappings to split one: at least the memory goes back */
    }
}

void *os_remap(void *at, size_t old_bytes, size_t new_bytes) {
    return address_or_null(kernel(SYS_mremap, (long)at, (long)old_bytes, (long)new_bytes, MREMAP_MAYMOVE, 0));
}

bool os_purge(void *at, size_t bytes) { return kernel(SYS_madvise, (long)at, (long)bytes, MADV_DONTNEED, 0, 0) == 0; }

unsigned os_cpus(void) {
    /* The raw call reports how many bytes of the mask it filled, and fails when the mask is shorter than the kernel's:
     * 8192 is the most that kernels are built for. */
    uint64_t mask[8192 / 64] = {0};
    long filled = kernel(SYS_sched_getaffinity, 0, sizeof mask, (long)mask, 0, 0);
    unsigned cpus = 0;
    for (long i = 0; i < filled / 8; i++) {
        cpus += (unsigned)__builtin_popcountll(mask[i]);
    }
    return cpus > 0 ? cpus : 1;
}

uint64_t os_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void os_wait(const _Atomic uint32_t *word, uint32_t expected) {
    (void)kernel(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, (long)expected, 0, 0);
}

void os_wake(const _Atomic uint32_t *word) { (void)kernel(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1, 0, 0); }

void os_write_error(const char *text, size_t length) {
    while (length > 0) {
        long written = kernel(SYS_write, STDERR_FILENO, (long)text, (long)length, 0, 0);
        if (written == -EINTR) {
            continue;
        }
        if (written <= 0) {
            return;
        }
        text += written;
        length -= (size_t)written;
    }
}
