/* What an allocator gives back leaves the process's resident memory, instead of staying in it as lazily free. */
#include "hazard.h"

enum { BLOCKS = 64 * 1024, SIZE = 2048 };

int main(void) {
    require_serving();
    TABLE(block, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = touched(SIZE);
    }
    size_t full = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    (void)malloc_trim(0);
    for (int look = 0; look < 20; look++) {
        free(unseen(malloc(1000)));
        tasks_sleep(100);
    }
    size_t kept = resident_kib();
    EXPECT(kept <= full - BLOCKS / 1024 * SIZE / 2, "%zu KiB stay resident of %zu, after malloc_trim and 2 s", kept,
           full);
    size_t lazy = proc_number("/proc/self/smaps_rollup", "LazyFree:");
    EXPECT(lazy <= BLOCKS / 1024 * SIZE / 10, "%zu KiB are lazily free, of %d freed", lazy, BLOCKS / 1024 * SIZE);
    printf("%zu KiB are lazily free\n", lazy);
    return 0;
}
