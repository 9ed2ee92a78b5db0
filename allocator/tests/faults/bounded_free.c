/* No call of malloc or free gives back more than a bounded piece, however much is due: what a call costs does not
 * depend on what others have freed. The piece is bounded in bytes and in system calls, which are counted where they
 * are made; and piece by piece all of it goes back.
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
    PIECE_MOST = 2 << 20, /* given back by one call */
    CALLS_MOST = 64, /* of the kernel by one call */
    PAIRS = 3000, /* afterwards, so that what is left goes back */
    DUE_MS = 1300, /* freed memory is kept for a second */
};

static char *block[BLOCKS_MOST];
static size_t bytes_of_all, longest_bytes, longest_calls; /* one thread */

static void end_call(const char *what, size_t i) {
    bytes_of_all += bytes_of_call;
    longest_bytes = bytes_of_call > longest_bytes ? bytes_of_call : longest_bytes;
    longest_calls = calls_of_call > longest_calls ? calls_of_call : longest_calls;
    EXPECT(bytes_of_call <= PIECE_MOST, "%s %zu gave back %zu KiB, of %zu so far", what, i, bytes_of_call >> 10,
           bytes_of_all >> 10);
    EXPECT(calls_of_call <= CALLS_MOST, "%s %zu made %zu system calls", what, i, calls_of_call);
    bytes_of_call = calls_of_call = 0;
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
            block[i] = malloc(size);
            EXPECT(block[i] != NULL, "malloc(%zu) failed", size);
            block[i][0] = 1;
            end_call("malloc", i);
        }
        for (size_t i = 0; i < blocks; i++) {
            free(block[i]);
            end_call("free", i);
            if (i == blocks / 2) {
                tasks_sleep(DUE_MS);
            }
        }
    }
    tasks_sleep(DUE_MS);
    for (size_t i = 0; i < PAIRS; i++) {
        char *some = malloc(size + i % 16 * 4096);
        EXPECT(some != NULL, "malloc failed");
        end_call("a later malloc", i);
        free(some);
        end_call("a later free", i);
    }
    EXPECT(bytes_of_all >= (size_t)ALL_MIB << 19, "of %d MiB only %zu were given back", ALL_MIB, bytes_of_all >> 20);
    printf("%zu MiB given back, at most %zu KiB and by %zu calls at once\n", bytes_of_all >> 20, longest_bytes >> 10,
           longest_calls);
    return 0;
}
