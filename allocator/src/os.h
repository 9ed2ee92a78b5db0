/* The only room that makes system calls. Everything here is raw: no libc wrapper is called that another preload
 * could have replaced, nothing allocates, and errno is left alone. Sizes are in bytes and multiples of the page size unless said. */
#ifndef FREESTONE_OS_H
#define FREESTONE_OS_H

#include "bits.h"

/* Bytes of a page of the running kernel: 4, 16 or 64 KiB. */
size_t os_page_bytes(void);

/* Address space without memory, aligned to `alignment` (a power of two, at least a page). NULL when refused. */
void *os_reserve(size_t bytes, size_t alignment);

/* Makes reserved address space usable (zero on first touch). False when the kernel refuses the memory. */
bool os_commit(void *at, size_t bytes);

/* A mapping of its own, usable at once and zero, aligned to `alignment`. NULL when refused. */
void *os_map(size_t bytes, size_t alignment);

void os_unmap(void *at, size_t bytes);

/* Changes the size of a mapping made by os_map, moving it if need be; pages move, bytes are not copied.
 * NULL when refused: the old mapping is then untouched. */
void *os_remap(void *at, size_t old_bytes, size_t new_bytes);

/* Gives the pages back to the kernel; they read as zero afterwards. False when the kernel did not take them
 * (locked memory): their content is then unchanged. */
bool os_purge(void *at, size_t bytes);

/* CPUs this process may run on, at least 1. */
unsigned os_cpus(void);

/* Milliseconds of a monotonic clock of a few milliseconds' grain; read in user space. */
uint64_t os_milliseconds(void);

/* Sleeps while *word == expected; may return early for no reason. */
void os_wait(const _Atomic uint32_t *word, uint32_t expected);

/* Wakes one sleeper on `word`. */
void os_wake(const _Atomic uint32_t *word);

/* Writes to standard error, as much as it takes. */
void os_write_error(const char *text, size_t length);

#endif
