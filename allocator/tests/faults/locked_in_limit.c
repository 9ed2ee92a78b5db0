/* mlockall by a user who may lock only so much: what counts is what is mapped, touched or not, and it is little. The
 * heap must not make it more than the limit; and once all is locked, it serves up to near the limit, then gives NULL
 * and ENOMEM. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { LIMIT_MOST_MIB = 256, LIMIT_LEAST_MIB = 8, BLOCK = 50000, BLOCKS_MOST = 16384 };

static unsigned char *block[BLOCKS_MOST];

int main(void) {
    require_serving();
    free(unseen(malloc(1000)));
    struct rlimit limit;
    EXPECT(getrlimit(RLIMIT_MEMLOCK, &limit) == 0, "errno %d", errno);
    rlim_t bytes = limit.rlim_max < (rlim_t)LIMIT_MOST_MIB << 20 ? limit.rlim_max : (rlim_t)LIMIT_MOST_MIB << 20;
    if (bytes < (rlim_t)LIMIT_LEAST_MIB << 20) {
        expect_skip("less than %d MiB may be locked here (ulimit -Hl)", LIMIT_LEAST_MIB);
    }
    limit = (struct rlimit){bytes, bytes};
    EXPECT(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "errno %d", errno);
    EXPECT(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0), "errno %d", errno);
    EXPECT(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "mlockall under a limit of %zu MiB: errno %d", (size_t)bytes >> 20,
           errno);
    for (int round = 0; round < 2; round++) {
        size_t served = 0;
        errno = 0;
        while (served < BLOCKS_MOST && (block[served] = calloc(1, BLOCK)) != NULL) {
            EXPECT(pattern_not_zero(block[served], BLOCK) == SIZE_MAX, "calloc is not zero");
            pattern_fill(block[served], 0, BLOCK, served);
            served++;
        }
        EXPECT(served < BLOCKS_MOST && errno == ENOMEM, "%zu blocks, errno %d", served, errno);
        /* Of the least limit more than half is mapped before anything is asked for: libc, the library and its tables. */
        EXPECT(served * BLOCK >= bytes / 5, "%zu KiB of %zu were served", served * BLOCK >> 10, (size_t)bytes >> 10);
        for (size_t i = 0; i < served; i++) {
            EXPECT(pattern_mismatch(block[i], BLOCK, i) == SIZE_MAX, "block %zu has changed", i);
            free(block[i]);
        }
    }
    return 0;
}
