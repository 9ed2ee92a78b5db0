/* A kernel that says it has purged and leaves the pages as they are, as QEMU's user mode does before 7.1 and some sandboxes do: blocks of calloc
 * are zero all the same. Also where it came to be like that only after the program has seen it purge, or only for one of its threads; and to find that out
 * nothing is mapped once filters are there.
 *
 *   purges_nothing [later|itself|locked] */
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
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

static pthread_barrier_t together;

static void free_and_trim(void) {
    enum { BYTES = 20 << 20 };
    char *freed = unseen(malloc(BYTES));
    EXPECT(freed != NULL, "no memory");
    memset(freed, DIRTY, BYTES);
    free(freed);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void *purge_beside(void *unused) {
    pthread_barrier_wait(&together);
    free_and_trim();
    pthread_barrier_wait(&together);
    return unused;
}

/* This thread alone comes under the filter; another, for which the kernel answers, purges first. */
static void filter_itself(void) {
    pthread_t other;
    pthread_barrier_init(&together, NULL, 2);
    EXPECT(pthread_create(&other, NULL, purge_beside, NULL) == 0, "no thread");
    filter_enter(&filter, false);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    pthread_join(other, NULL);
}

/* What was mapped by then is locked in memory, what came later not, and whoever maps something dies. */
static void trim_without_mapping(void) {
    static const long maps[] = {SYS_mmap};
    static const struct filter punishes = {maps, 1, false, FILTER_KILLS};
    if (mlockall(MCL_CURRENT) != 0) {
        expect_skip("no memory may be locked here");
    }
    for (size_t i = 0; i < BLOCKS / 8; i++) {
        block[i] = unseen(malloc(1 << 20));
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], DIRTY, 1 << 20);
    }
    free_and_trim();
    filter_enter(&punishes, true);
    for (size_t i = 0; i < BLOCKS / 8; i++) {
        give(i);
    }
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

int main(int count, char **arguments) {
    if (count == 1) {
        begin_under_filter(arguments[0]);
    }
    require_serving();
    if (strcmp(arguments[1], "locked") == 0) {
        trim_without_mapping();
        return 0;
    }
    if (strcmp(arguments[1], "itself") == 0) {
        filter_itself();
    }
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
