/* Included before every source of the library where FREESTONE_COUNTING asks for it: each atomic operation, taking of a lock and system
 * call about memory says where it is and what it touches. Nothing of it is in the product. For programs whose threads go on one at a time, and say which. */
#ifndef FREESTONE_TESTS_COUNTING_H
#define FREESTONE_TESTS_COUNTING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>

enum counted { COUNTED_LOAD, COUNTED_STORE, COUNTED_CHANGE };

/* `site` is a file and an expression: the same string wherever it is the same place. */
#define COUNTED_INTERNAL __attribute__((visibility("hidden")))
COUNTED_INTERNAL void counting_touch(const char *site, enum counted kind, const volatile void *place);
COUNTED_INTERNAL void counting_take(const char *site, const volatile void *lock);
COUNTED_INTERNAL void counting_taken(const char *site, const volatile void *lock);
COUNTED_INTERNAL void counting_free(const volatile void *lock);
COUNTED_INTERNAL void counting_call(const char *name);

#define COUNTED_TOUCH(place, kind) counting_touch(__FILE__ "\t" #place, kind, (const volatile void *)(place))

/* The macros of <stdatomic.h> come down to these, as the library's own sources do; a macro is not expanded within itself. */
#define __atomic_load_n(place, order) (COUNTED_TOUCH(place, COUNTED_LOAD), __atomic_load_n(place, order))
#define __atomic_store_n(place, value, order) \
    (COUNTED_TOUCH(place, COUNTED_STORE), __atomic_store_n(place, value, order))
#define __atomic_exchange_n(place, value, order) \
    (COUNTED_TOUCH(place, COUNTED_CHANGE), __atomic_exchange_n(place, value, order))
#define __atomic_fetch_add(place, value, order) \
    (COUNTED_TOUCH(place, COUNTED_CHANGE), __atomic_fetch_add(place, value, order))
#define __atomic_fetch_sub(place, value, order) \
    (COUNTED_TOUCH(place, COUNTED_CHANGE), __atomic_fetch_sub(place, value, order))
#define __atomic_fetch_and(place, value, order) \
    (COUNTED_TOUCH(place, COUNTED_CHANGE), __atomic_fetch_and(place, value, order))
#define __atomic_fetch_or(place, value, order) \
    (COUNTED_TOUCH(place, COUNTED_CHANGE), __atomic_fetch_or(place, value, order))
#define __atomic_compare_exchange_n(place, seen, value, weak, order, failed) \
    (COUNTED_TOUCH(place, COUNTED_CHANGE), __atomic_compare_exchange_n(place, seen, value, weak, order, failed))

#include "../atomics_spelled_out.h"

/* Their numbers, as os.c hands them to the kernel. */
#undef SYS_mmap
#undef SYS_munmap
#undef SYS_mremap
#undef SYS_madvise
#undef SYS_mprotect
#define SYS_mmap (counting_call("mmap"), __NR_mmap)
#define SYS_munmap (counting_call("munmap"), __NR_munmap)
#define SYS_mremap (counting_call("mremap"), __NR_mremap)
#define SYS_madvise (counting_call("madvise"), __NR_madvise)
#define SYS_mprotect (counting_call("mprotect"), __NR_mprotect)

/* Its functions as they are, with what is counted inside; from here on whoever takes a lock is told by name as well. */
#include "../../src/lock.h"

#define lock_take(lock) \
    (counting_take(__FILE__ "\t" #lock, lock), lock_take(lock), counting_taken(__FILE__ "\t" #lock, lock))
#define lock_free(lock) (counting_free(lock), lock_free(lock))

#endif
