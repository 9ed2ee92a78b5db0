/* Hooks on munmap, madvise and mremap, as MPI and RDMA libraries install them to keep their caches of registered memory true. */
#ifndef FREESTONE_TESTS_HOOKS_H
#define FREESTONE_TESTS_HOOKS_H

#include <stdatomic.h>
#include <stddef.h>

enum hook { HOOK_MUNMAP, HOOK_MADVISE, HOOK_MREMAP, HOOKS };

/* Called before each call is made, by the thread that makes it. Returns 0 to let it pass, an errno value for a failure without a call, HOOK_LIES for
 * a success without one. */
enum { HOOK_LIES = -1 };
typedef int hook_decision(enum hook hook, char *at, size_t bytes);

/* Installs all three:
 *
 *   patch    jumps at the start of libc's functions ("bistro", "overwrite")
 *   slots    the table by which the object with malloc calls other objects
 *   own      nothing: functions of the program stand before libc's (own_functions.c, to be linked then)
 *
 * Skips the program if the machine does not allow that. */
void hooks_install(const char *how, hook_decision *decide);

/* Calls seen so far. */
extern atomic_ulong hooks_seen[HOOKS];

/* What takes the places of the three. */
int hooks_munmap(void *at, size_t bytes);
int hooks_madvise(void *at, size_t bytes, int advice);
void *hooks_mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to);

#endif
