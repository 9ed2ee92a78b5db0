/* A kernel that says it has purged and leaves the pages as they are, as QEMU's user mode does before 7.1 and some sandboxes do: blocks of calloc
 * are zero all the same. Also where it came to be like that only after the program has seen it purge.
 *
 *   purges_nothing [later] */
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "filter.h"
#include "serving.h"
#include "../idle/tasks.h"

enum { BLOCKS = 400, STAYS = 16, ROUNDS = 3, REST_MS = 1200, DIRTY = 0x55 };

static char *block[BLOCKS];

static void take(size_t i, size_t size) {
    block[i] = unseen(calloc(1, size));
    EXPECT(block[i] != NULL, "no memory");
    for (size_t byte = 0; byte < size; byte++) {
        EXPECT(block[i][byte] == 0, "byte %zu of block %zu of %zu bytes is %d", byte, i, size, block[i][byte]);
    }
    memset(block[i], DIRTY, size);
}

static void give(size_t i) {
    free(block[i]);
    block[i] = NULL;
}

static void rounds(size_t size, size_t blocks, size_t stays) {
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < blocks; i++) {
            if (block[i] == NULL) {
                take(i, size);
            }
        }
        for (size_t i = 0; i < blocks; i++) {
            if (i % stays != 0) {
                give(i);
            }
        }
        if (round % 2 == 0) {
#ifdef __GLIBC__
            malloc_trim(0);
#endif
        } else {
            tasks_sleep(REST_MS); /* the keeper's turn */
        }
    }
    for (size_t i = 0; i < blocks; i++) {
        give(i);
    }
}

/* It answers for the kernel. */
static const long numbers[] = {SYS_madvise};
static const struct filter filter = {numbers, 1, false, 0};

/* The program is begun anew under the filter. */
static void begin_under_filter(char *program) {
    filter_enter(&filter, true);
    execl(program, program, "under", (char *)NULL);
    EXPECT(false, "the program cannot be begun anew");
}

int main(int count, char **arguments) {
    if (count == 1) {
        begin_under_filter(arguments[0]);
    }
    require_serving();
    if (strcmp(arguments[1], "later") == 0) {
        rounds(6000, BLOCKS, STAYS);
        filter_enter(&filter, true);
    }
    rounds(6000, BLOCKS, STAYS);
    rounds(20000, BLOCKS, STAYS);
    rounds(100000, BLOCKS, STAYS);
    rounds(1000000, BLOCKS / 4, STAYS);
    rounds((size_t)40 << 20, 2, 3);
    return 0;
}
