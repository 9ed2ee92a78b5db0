/* No call of malloc or free gives back more than a bounded piece, or brings in more than a few pages, however much is due: the cost of a call does
 * not depend on what others have freed. Bytes, system calls and page faults are counted; and piece by piece all of it goes back.
 *
 *   bounded_free BLOCK-BYTES */
#include <stdatomic.h>

#include "../idle/tasks.h"
#include "call_cost.h"
#include "entry.h"
#include "expect.h"
#include "gate.h"
#include "serving.h"

enum {
    ALL_MIB = 768,
    BLOCKS_MOST = 200000,
    PIECE_MOST = 3 << 20, /* given back by one call: one of slabs for their budget, and up to one and a half of spans */
    CALLS_MOST = 64, /* of the kernel by one call */
    FAULTS_MOST = 128, /* within one call: its bookkeeping */
    PAIRS = 3000, /* afterwards, so that what is left goes back */
    DUE_MS = 1300, /* freed memory is kept for a second */
};

static char *block[BLOCKS_MOST];
static size_t bytes_of_all; /* one thread */
static struct call_cost most;

static void end_call(const char *what, size_t i) {
    call_ends();
    bytes_of_all += call_cost.bytes;
    call_cost_add_up(&most);
    EXPECT(call_cost.bytes <= PIECE_MOST, "%s %zu gave back %zu KiB, of %zu so far", what, i, call_cost.bytes >> 10,
           bytes_of_all >> 10);
    EXPECT(call_cost.calls <= CALLS_MOST, "%s %zu made %zu system calls", what, i, call_cost.calls);
    EXPECT(call_cost.faults <= FAULTS_MOST, "%s %zu brought in %zu pages", what, i, call_cost.faults);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: bounded_free BLOCK-BYTES");
    size_t size = strtoul(arguments[1], NULL, 10), blocks = ((size_t)ALL_MIB << 20) / size;
    EXPECT(blocks > 0 && blocks <= BLOCKS_MOST, "at least %d bytes", (ALL_MIB << 20) / BLOCKS_MOST);
    free(
        unseen(malloc(size))); /* at its start the heap looks for address space, and gives back what never was memory */
    static const long calls[] = {SYS_munmap, SYS_madvise, SYS_mmap, SYS_mprotect, SYS_mremap};
    free(unseen(malloc(1))); /* what the library does once, at its start, does not count */
    gate_close(calls, sizeof calls / sizeof *calls, false, count_call);
    for (int phase = 0; phase < 2; phase++) {
        for (size_t i = 0; i < blocks; i++) {
            call_begins();
            block[i] = unseen(malloc(size));
            end_call("malloc", i);
            EXPECT(block[i] != NULL, "malloc(%zu) failed", size);
            block[i][0] = 1;
        }
        for (size_t i = 0; i < blocks; i++) {
            call_begins();
            free(block[i]);
            end_call("free", i);
            if (i == blocks / 2) {
                tasks_sleep(DUE_MS);
            }
        }
    }
    tasks_sleep(DUE_MS);
    for (size_t i = 0; i < PAIRS; i++) {
        call_begins();
        char *some = unseen(malloc(size + i % 16 * 4096));
        end_call("a later malloc", i);
        EXPECT(some != NULL, "malloc failed");
        call_begins();
        free(some);
        end_call("a later free", i);
    }
    EXPECT(bytes_of_all >= (size_t)ALL_MIB << 19, "of %d MiB only %zu were given back", ALL_MIB, bytes_of_all >> 20);
    printf("%zu MiB given back; at once at most %zu KiB, %zu system calls, %zu page faults\n", bytes_of_all >> 20,
           most.bytes >> 10, most.calls, most.faults);
    return 0;
}
