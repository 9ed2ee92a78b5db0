/* Pages are locked as they are mapped (mlockall with MCL_FUTURE), and so brought in at once: the heap grows by what is needed, and never by much at a
 * time. */
#include <errno.h>
#include <sys/mman.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum { MIB = 1 << 20, LIVE = 160 * MIB, STEP_MOST_KIB = 8 * 1024, AHEAD_MOST_KIB = 24 * 1024 };

/* One block after the other; the resident set is read now and then, as that takes a while. */
static void fill(size_t size) {
    static void *blocks[LIVE / 16384];
    size_t count = LIVE / size, before_kib = resident_kib(), last_kib = before_kib, step_kib = size / 1024 + MIB / 1024;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(size);
        EXPECT(blocks[i] != NULL, "malloc(%zu) failed with errno %d", size, errno);
        if (i % (MIB / 16384) == 0 || size >= MIB) {
            size_t now_kib = resident_kib();
            EXPECT(resident_more_kib(now_kib, last_kib) < step_kib + STEP_MOST_KIB, "%zu KiB more came at once",
                   resident_more_kib(now_kib, last_kib));
            last_kib = now_kib;
        }
    }
    size_t more_kib = resident_more_kib(resident_kib(), before_kib);
    EXPECT(more_kib < LIVE / 1024 + LIVE / 1024 / 8 + AHEAD_MOST_KIB, "%zu KiB are resident for %d", more_kib,
           LIVE / 1024);
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: locked_growth BYTES");
    free(malloc(1));
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        expect_skip("mlockall is not allowed here (errno %d); it takes CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK", errno);
    }
    fill(strtoul(arguments[1], NULL, 10));
    munlockall();
    return 0;
}
