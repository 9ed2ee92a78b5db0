/* What guarded blocks may not cost: addresses under a limit, requests that nobody can fulfil granted, memory in use that the statistics do not
 * tell of. */
#include <errno.h>
#include <sys/resource.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { MIB = 1024 * 1024, TURNS = 60 };

int main(void) {
    require_serving();
    for (int i = 0; i < 20; i++) {
        void *block = unseen(malloc(unseen_size((size_t)30 << 40)));
        EXPECT(block == NULL && errno == ENOMEM, "30 TiB were granted in turn %d", i);
    }

    struct freestone_stats before, after;
    freestone_stats_read(&before);
    char *large = unseen(malloc(64 * MIB)), *one = unseen(malloc(MIB / 2));
    EXPECT(large != NULL && one != NULL, "no memory");
    freestone_stats_read(&after);
    EXPECT(after.in_use - before.in_use >= 64 * (size_t)MIB + MIB / 2, "%zu more bytes in use",
           after.in_use - before.in_use);
    free(large);
    free(one);

    struct rlimit limit = {(rlim_t)1024 * MIB, (rlim_t)1024 * MIB};
    (void)freestone_purge();
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
    for (size_t i = 0; i < TURNS; i++) {
        char *block = unseen(malloc((100 + i * 7 % 130) * MIB / 1));
        EXPECT(block != NULL, "turn %zu: a block at a time does not fit any more", i);
        block[0] = 1;
        free(block);
        for (size_t size = 300000; size < MIB; size += 100000) {
            free(unseen(malloc(size)));
        }
    }
    return 0;
}
