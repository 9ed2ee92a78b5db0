/* A hardened process that locks its memory: large blocks that it has freed are not kept from it while they stay resident, and what calloc gives is zero. */
#include <errno.h>
#include <sys/mman.h>

#include "../entry.h"
#include "../expect.h"
#include "../pattern.h"
#include "../resident.h"
#include "../serving.h"

enum { ROUNDS = 200, SIZE = 2000000, STEP = 1000, MOST_KIB = 64 * 1024 };

int main(void) {
    require_serving();
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        expect_skip("mlockall is not allowed here (errno %d); it takes CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK", errno);
    }
    size_t before = resident_kib();
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t size = SIZE + i * STEP;
        char *block = unseen(calloc(1, size));
        EXPECT(block != NULL, "no memory");
        size_t dirty = pattern_not_zero(block, size);
        EXPECT(dirty == SIZE_MAX, "calloc(%zu): byte %zu is not zero", size, dirty);
        memset(block, 7, size);
        free(block);
    }
    size_t now = resident_kib();
    EXPECT(now < before + MOST_KIB, "of a program that has one large block at a time %zu KiB are resident, %zu before",
           now, before);
    return 0;
}
