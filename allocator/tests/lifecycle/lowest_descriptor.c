/* A program that closes descriptor 0 and opens a file gets 0 for it, as daemons rely on, however often the keeper is started meanwhile: the
 * library opens nothing beside the program. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { BLOCKS = 60000, BLOCK_BYTES = 160, KEPT_IN = 200, WORK_MS = 1200 };

static void *blocks[BLOCKS];
static atomic_bool done;

/* Frees much, and makes the keeper leave, so that it is started again. Opens nothing. */
static void *start_keepers(void *unused) {
    (void)unused;
    while (!atomic_load(&done)) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(BLOCK_BYTES);
            EXPECT(blocks[i] != NULL, "malloc(%d) failed", BLOCK_BYTES);
            memset(blocks[i], (int)i, BLOCK_BYTES);
        }
        for (int last = 0; last < 2; last++) {
            for (size_t i = 0; i < BLOCKS; i++) {
                if (last || i % KEPT_IN != 0) {
                    free(blocks[i]);
                    blocks[i] = NULL;
                }
            }
            EXPECT(seteuid(geteuid()) == 0, "seteuid to what it is already fails");
            EXPECT(unshare(0) == 0, "unshare of nothing fails"); /* the static library has no seteuid */
        }
    }
    return NULL;
}

int main(void) {
    require_serving();
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, start_keepers, NULL) == 0, "no thread");
    size_t turns = 0;
    for (long end = tasks_clock() + WORK_MS; tasks_clock() < end; turns++) {
        EXPECT(close(0) == 0 || turns == 0, "turn %zu: somebody else has closed descriptor 0", turns);
        int file = open("/dev/null", O_RDONLY);
        EXPECT(file == 0, "turn %zu: the lowest free descriptor is %d", turns, file);
    }
    atomic_store(&done, true);
    EXPECT(pthread_join(thread, NULL) == 0, "pthread_join failed");
    EXPECT(turns > 100, "%zu turns", turns);
    return 0;
}
