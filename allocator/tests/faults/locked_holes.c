/* Pages are locked as they are mapped (mlockall with MCL_FUTURE), and a limit is reached. Every second block is free again: a block of half of what is
 * free finds room, although the kernel purges nothing of what is free.
 *
 *   locked_holes address-space | data | locked     which limit */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "status_limit.h"

enum { MOST = 1000, EACH = 320 * 1024, MORE = 60 << 20, MORE_LOCKED = 6 << 20 }; /* users may lock 8 MiB */

static void limit_to(const char *which) {
    if (strcmp(which, "address-space") == 0) {
        set_limit(RLIMIT_AS, "VmSize:", MORE);
    } else if (strcmp(which, "data") == 0) {
        set_limit(RLIMIT_DATA, "VmData:", MORE);
    } else {
        set_limit(RLIMIT_MEMLOCK, "VmLck:", MORE_LOCKED); /* not for root */
        EXPECT(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0), "errno %d", errno);
    }
}

int main(int count, char **arguments) {
    static unsigned char *block[MOST];
    size_t blocks = 0;
    require_serving();
    EXPECT(count == 2, "usage: locked_holes address-space|data|locked");
    free(unseen(malloc(1)));
    if (mlockall(MCL_FUTURE) != 0) {
        expect_skip("mlockall is not allowed here (errno %d); it takes CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK", errno);
    }
    limit_to(arguments[1]);
    while (blocks < MOST && (block[blocks] = unseen(malloc(EACH))) != NULL) {
        pattern_fill(block[blocks], 0, EACH, blocks);
        blocks++;
    }
    EXPECT(blocks >= MORE_LOCKED / EACH / 2 && blocks < MOST, "%zu blocks", blocks);
    for (size_t i = 0; i < blocks; i += 2) {
        free(block[i]);
    }
    size_t wanted = blocks / 4 * EACH;
    char *large = unseen(malloc(wanted));
    EXPECT(large != NULL, "no %zu bytes, where %zu are free", wanted, blocks / 2 * EACH);
    memset(large, 1, wanted);
    free(large);
    for (size_t i = 1; i < blocks; i += 2) {
        EXPECT(pattern_mismatch(block[i], EACH, i) == SIZE_MAX, "block %zu has changed", i);
        free(block[i]);
    }
    munlockall();
    return 0;
}
