/* Counts the system calls that one call of the library makes, and the bytes that they give back. */
#ifndef FREESTONE_TESTS_CALL_COST_H
#define FREESTONE_TESTS_CALL_COST_H

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static size_t bytes_of_call, calls_of_call; /* one thread */

static int count_call(long number, const long arguments[6]) {
    if (number == SYS_munmap ||
        (number == SYS_madvise && (arguments[2] == MADV_DONTNEED || arguments[2] == MADV_FREE))) {
        bytes_of_call += (size_t)arguments[1];
    }
    calls_of_call++;
    return 0;
}

#endif
