/* The thread that allocated sleeps for ever; another frees all. What was freed is used again by others, and goes back.
 *
 *   owner_asleep SIZE */
#include "hazard.h"

enum { MIB = 128, BLOCKS_MOST = 1 << 20, GROWTH_PERCENT = 130, RETURNED_PERCENT = 70 };

static void *block[BLOCKS_MOST], *again[BLOCKS_MOST];
static size_t size, blocks;
static pthread_barrier_t together;

static void *own(void *unused) {
    for (size_t i = 0; i < blocks; i++) {
        block[i] = touched(size);
    }
    pthread_barrier_wait(&together);
    for (;;) {
        pause();
    }
    return unused;
}

static void *free_all(void *unused) {
    for (size_t i = 0; i < blocks; i++) {
        free(block[i]);
    }
    pthread_barrier_wait(&together);
    for (;;) {
        pause();
    }
    return unused;
}

static void start(void *(*work)(void *)) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
    pthread_barrier_wait(&together);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: owner_asleep SIZE");
    size = strtoul(arguments[1], NULL, 10);
    blocks = ((size_t)MIB << 20) / size;
    EXPECT(blocks > 0 && blocks <= BLOCKS_MOST, "SIZE is at least %d", (MIB << 20) / BLOCKS_MOST);
    memset(block, 1, blocks * sizeof *block);
    memset(again, 1, blocks * sizeof *block);
    pthread_barrier_init(&together, NULL, 2);
    size_t before = resident_kib();
    start(own);
    size_t full = resident_kib() - before;
    start(free_all);
    for (size_t i = 0; i < blocks; i++) {
        again[i] = touched(size);
    }
    size_t second = resident_kib() - before;
    EXPECT(second * 100 <= full * GROWTH_PERCENT, "%zu KiB for the owner's blocks, %zu once another had as many again",
           full, second);
    for (size_t i = 0; i < blocks; i++) {
        free(again[i]);
    }
    size_t most = before + second - second * RETURNED_PERCENT / 100;
    size_t left = resident_after_rest(most);
    size_t percent = percent_given_back(before, second, left);
    EXPECT(left <= most, "all was freed, %zu %% given back in %d s", percent, RETURNED_S);
    printf("%zu KiB, then %zu; %zu %% given back\n", full, second, percent);
    fflush(stdout);
    _exit(0);
}
