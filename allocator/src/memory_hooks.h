/* Memory hooks: code that takes the place of libc's munmap, madvise or mremap, or was patched into them, to learn which pages go back to the
 * kernel or move. Caches of registered memory (MPI, RDMA) depend on it: a network card writes to a page until the cache drops it. Part of os.
 *
 * Memory that has held blocks of the program is returned and moved through these three functions, on the program's threads. They are called as any
 * library calls them, by names that the dynamic linker has bound, so that every kind of hook takes part: one in front of libc, one in libc's code,
 * one in the relocations of this library. A hook may allocate and free, wait for locks of the program, and fail. Therefore
 *
 *   - no lock of the library is held during a call, and no thread waits for the calling one without a bound, unless no hook is installed. The hook may
 *     wait for a lock of the program whose holder is in malloc or forks: malloc finds all locks free, a fork goes on after a second (gate_close),
 *     and so does a wait for memory that other threads are purging (purge_wait);
 *   - the thread may be inside (gate.h). A hook's blocks then come from the shelter, as in a signal handler;
 *   - a thread makes one such call at a time. Memory that is freed within a hook goes back after the hook has returned.
 *
 * The keeper is no thread of libc's and makes system calls instead. If a hook is installed, it returns nothing. */
#ifndef FREESTONE_MEMORY_HOOKS_H
#define FREESTONE_MEMORY_HOOKS_H

#include "bits.h"

/* Whether a hook is installed, as far as can be seen: the library is not bound to libc's own functions, or their code has changed. Reads
 * memory only, so that the keeper may ask. */
bool memory_hooks_installed(void);

/* Whether the calling thread may return or move memory now: it is not in one of these calls; or it is the keeper, and no hook is installed. */
bool memory_hooks_may_call(void);

/* Whether a thread is in a hook now, or about to enter one or to leave it. */
bool memory_hooks_are_running(void);

/* The three functions, for a thread that may call. They fail as libc's do, but errno stays as it is. */
bool memory_hooks_munmap(void *at, size_t bytes);
bool memory_hooks_purge(void *at, size_t bytes); /* madvise(MADV_DONTNEED) */
void *memory_hooks_mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to);

/* In the child of a fork, where no other thread is in a hook. */
void memory_hooks_after_fork(void);

#endif
