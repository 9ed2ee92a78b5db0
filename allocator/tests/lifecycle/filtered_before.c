/* A library that the program is linked with puts a filter on in its constructor, before the allocator's own: that makes no call then but those of the
 * heap. */
#include <sys/prctl.h>

#include "entry.h"
#include "expect.h"
#include "../memory/figures.h"
#include "serving.h"

enum { BLOCKS = 80, MIB = 1 << 20, STEPS = 100000, SIZES = 9000 };

int main(void) {
    require_serving();
    EXPECT(prctl(PR_GET_SECCOMP) == 2, "there is no filter");
    static void *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = unseen(malloc(MIB));
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, MIB);
    }
    for (size_t i = 0; i < STEPS; i++) {
        free(unseen(malloc(i % SIZES)));
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    EXPECT(figure("group_limit") == 0, "a file was read");
    return 0;
}
