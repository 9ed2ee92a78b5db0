/* Counts what one call of the library costs: the system calls that it makes, the bytes that they give back, and the page faults, each of
 * which clears a page. Filters watch the calls, and under filters the library asks for no huge pages: see unit.arena. */
#ifndef FREESTONE_TESTS_CALL_COST_H
#define FREESTONE_TESTS_CALL_COST_H

#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "expect.h"

static struct call_cost {
    size_t bytes, calls, faults;
} call_cost; /* of the call under way; one thread */

static int count_call(long number, const long arguments[6]) {
    if (number == SYS_munmap ||
        (number == SYS_madvise && (arguments[2] == MADV_DONTNEED || arguments[2] == MADV_FREE))) {
        call_cost.bytes += (size_t)arguments[1];
    }
    call_cost.calls++;
    return 0;
}

static inline size_t faults_of_thread(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_THREAD, &usage) == 0, "no usage");
    return (size_t)usage.ru_minflt;
}

static inline void call_begins(void) { call_cost = (struct call_cost){.faults = faults_of_thread()}; }

static inline void call_ends(void) { call_cost.faults = faults_of_thread() - call_cost.faults; }

/* The most of each kind. */
static inline void call_cost_add_up(struct call_cost *most) {
    most->bytes = call_cost.bytes > most->bytes ? call_cost.bytes : most->bytes;
    most->calls = call_cost.calls > most->calls ? call_cost.calls : most->calls;
    most->faults = call_cost.faults > most->faults ? call_cost.faults : most->faults;
}

#endif
