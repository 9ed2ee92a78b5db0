/* Arrays that grow by steps through realloc, in random order: each leaves the slabs of one size class after the other. They live within a bound of
 * their live bytes, and no call purges more than a bounded piece for it. */
#include "call_cost.h"
#include "entry.h"
#include "expect.h"
#include "gate.h"
#include "pattern.h"
#include "serving.h"

enum {
    ARRAYS = 40000,
    STEP_LEAST = 64,
    STEPS = 200,
    LIVE_MIB = 114,
    PERCENT_MOST = 155, /* peak, of the live bytes */
    /* Within one realloc that moves: a piece for the budget, and what malloc and free each purge of spans if there is no keeper. */
    PIECE_MOST = 5 << 20, /* bytes */
    CALLS_MOST = 128, /* of the kernel */
    FAULTS_MOST = 192, /* the copy included */
};

static char *array[ARRAYS];
static size_t bytes[ARRAYS];
static struct call_cost most;

static size_t peak_kib(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0, "no usage");
    return (size_t)usage.ru_maxrss;
}

static void grow(size_t i, size_t size) {
    call_begins();
    array[i] = unseen(realloc(array[i], size));
    call_ends();
    call_cost_add_up(&most);
    EXPECT(array[i] != NULL, "realloc(%zu) failed", size);
    EXPECT(call_cost.bytes <= PIECE_MOST, "one call gave back %zu KiB", call_cost.bytes >> 10);
    EXPECT(call_cost.calls <= CALLS_MOST, "one call made %zu system calls", call_cost.calls);
    EXPECT(call_cost.faults <= FAULTS_MOST, "one call brought in %zu pages", call_cost.faults);
    memset(array[i] + bytes[i], (int)i, size - bytes[i]);
    bytes[i] = size;
}

int main(void) {
    require_serving();
    uint64_t random = 7;
    size_t live = 0, before = peak_kib();
    free(unseen(malloc(1))); /* what the library does once, at its start, does not count */
    static const long calls[] = {SYS_munmap, SYS_madvise, SYS_mmap, SYS_mprotect, SYS_mremap};
    gate_close(calls, sizeof calls / sizeof *calls, false, count_call);
    while (live < (size_t)LIVE_MIB << 20) {
        size_t i = pattern_below(&random, ARRAYS);
        size_t step = STEP_LEAST + pattern_below(&random, STEPS);
        grow(i, bytes[i] + step);
        live += step;
    }
    size_t peak = peak_kib() - before;
    EXPECT(peak <= (live >> 10) * PERCENT_MOST / 100, "%zu KiB resident at the peak for %zu KiB", peak, live >> 10);
    printf("%zu MiB at the peak for %zu MiB; at once at most %zu KiB given back, %zu system calls, %zu page faults\n",
           peak >> 10, live >> 20, most.bytes >> 10, most.calls, most.faults);
    return 0;
}
