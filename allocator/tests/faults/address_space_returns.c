/* address_space_returns BLOCK-BYTES: address space is limited, a gibibyte, and the program has had 700 MiB of it in blocks that are free again.
 * What a moment later asks the kernel itself for as much, or for threads, finds room: what lies behind the last block in use is
 * unmapped, not only purged. */
#include <pthread.h>
#include <sys/mman.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "idle/tasks.h"

enum { WAIT_MS = 100, WAITS = 100, THREADS = 60, STACK = 8 << 20 };

static pthread_barrier_t together;

static void *wait_for_all(void *unused) {
    pthread_barrier_wait(&together);
    return unused;
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: address_space_returns BLOCK-BYTES");
    size_t total = (size_t)700 << 20, wanted = (size_t)600 << 20;
    size_t size = strtoul(arguments[1], NULL, 10), blocks = total / size;
    char **block = malloc(blocks * sizeof *block);
    EXPECT(block != NULL, "no list");
    for (size_t i = 0; i < blocks; i++) {
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "no block %zu of %zu", i, blocks);
        block[i][0] = block[i][size - 1] = 1;
    }
    for (size_t i = 0; i < blocks; i++) {
        free(block[i]);
    }
    void *mapping = MAP_FAILED;
    for (int i = 0; i < WAITS && mapping == MAP_FAILED; i++) {
        tasks_sleep(WAIT_MS);
        mapping = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    EXPECT(mapping != MAP_FAILED, "no %zu bytes, %d ms after as many were freed", wanted, WAITS * WAIT_MS);
    EXPECT(munmap(mapping, wanted) == 0, "not unmapped");
    pthread_attr_t attributes;
    pthread_t thread[THREADS];
    pthread_barrier_init(&together, NULL, THREADS + 1);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], &attributes, wait_for_all, NULL) == 0, "no thread %d", i);
    }
    pthread_barrier_wait(&together);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    char *again = malloc(size);
    EXPECT(again != NULL, "no block afterwards");
    again[size - 1] = 1;
    free(again);
    free(block);
    return 0;
}
