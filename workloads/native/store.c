#define _GNU_SOURCE
#include "store.h"

#include "allocator.h"

#include <stdatomic.h>
#include <sys/mman.h>

enum { PAGE = 4096 }; /* touching more often than the machine's pages demand does no harm */

static _Atomic uint64_t held, peak; /* bytes; only their sum over the threads matters: relaxed */

static size_t whole_pages(size_t bytes) { return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1); }

void *store_take(size_t bytes) {
    const size_t length = whole_pages(bytes == 0 ? 1 : bytes);
    unsigned char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        out_of_memory(length);
    (void)madvise(memory, length, MADV_NOHUGEPAGE); /* refused by kernels that have none */
    for (size_t at = 0; at < length; at += PAGE)
        *(volatile unsigned char *)(memory + at) = 0;
    const uint64_t now = atomic_fetch_add_explicit(&held, length, memory_order_relaxed) + length;
    uint64_t before = atomic_load_explicit(&peak, memory_order_relaxed);
    while (before < now &&
           !atomic_compare_exchange_weak_explicit(&peak, &before, now, memory_order_relaxed, memory_order_relaxed)) {
    }
    return memory;
}

void store_return(void *memory, size_t bytes) {
    const size_t length = whole_pages(bytes == 0 ? 1 : bytes);
    (void)munmap(memory, length);
    (void)atomic_fetch_sub_explicit(&held, length, memory_order_relaxed);
}

uint64_t store_held_kib(void) { return atomic_load_explicit(&held, memory_order_relaxed) / 1024; }

uint64_t store_peak_kib(void) { return atomic_load_explicit(&peak, memory_order_relaxed) / 1024; }
