/* A page that the program has locked, one in each block, or what it locked at its start, stays resident: of the rest that it frees little does.
 *
 *   locked_page page|pages|start */
#include <malloc.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum { BLOCKS = 200, BYTES = 1 << 20, LEFT_KIB = 32 * 1024, PATIENCE_MS = 20000 };

static char *block[BLOCKS];

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: locked_page page|pages|start");
    require_serving();
    bool page = strcmp(arguments[1], "page") == 0, pages = strcmp(arguments[1], "pages") == 0;
    size_t before = resident_kib();
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BYTES);
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], 1, BYTES);
        if (i == 0 && !page && !pages && mlockall(MCL_CURRENT) != 0) {
            expect_skip("nothing may be locked here");
        }
    }
    for (int i = 0; i < (pages ? BLOCKS : page); i++) {
        if (mlock(block[i] + BYTES / 2, 1) != 0) {
            expect_skip("nothing may be locked here");
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    size_t left = resident_kib();
    for (int waited = 0; left > before + LEFT_KIB && waited < PATIENCE_MS; waited += 100) {
        usleep(100000);
        free(malloc(100)); /* what has fallen due may want a call */
        left = resident_kib();
    }
    EXPECT(left <= before + LEFT_KIB, "%zu KiB are still there, %zu before", left, before);
    (void)malloc_trim(0);
    EXPECT(resident_kib() <= before + LEFT_KIB, "%zu KiB after a trim", resident_kib());
    return 0;
}
