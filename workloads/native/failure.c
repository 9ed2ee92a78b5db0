/* The ways a workload fails: one line each, from whichever thread comes first, and status 1. */
#include "allocator.h"
#include "program.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_flag said = ATOMIC_FLAG_INIT; /* held for ever by the thread that speaks */

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    if (atomic_flag_test_and_set(&said))
        for (;;)
            pause(); /* the thread that speaks ends the process */
    char line[512];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        _exit(1);
    _exit(1);
}

void block_lost(const void *block, size_t bytes, uint64_t owner) {
    fail("%s: block %" PRIu64
         " (%zu bytes at %p) does not hold what was written into it: the allocator gave its memory "
         "away twice or wrote into it\n",
         program_name(), owner, bytes, block);
}

void block_not_zero(const void *block, size_t bytes) {
    fail("%s: calloc returned %zu bytes at %p that are not all zero\n", program_name(), bytes, block);
}

void out_of_memory(size_t bytes) {
    fail("%s: no memory for another %zu bytes; lower the parameters or raise the limit\n", program_name(), bytes);
}
