/* A library whose constructor uses the heap, and then puts a filter on that kills for opening a file, for asking which CPUs there are, and, unless
 * the environment has LETS_MPROTECT, for mprotect. */
#include <stdlib.h>
#include <sys/syscall.h>

#include "../faults/filter.h"

__attribute__((constructor)) static void put_on(void) {
    static const long numbers[] = {SYS_openat, SYS_sched_getaffinity, SYS_mprotect};
    size_t count = sizeof numbers / sizeof *numbers - (getenv("LETS_MPROTECT") != NULL);
    const struct filter filter = {numbers, count, false, FILTER_KILLS};
    free(malloc(100));
    filter_enter_by(&filter, FILTER_BY_PRCTL);
}
