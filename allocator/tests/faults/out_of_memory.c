/* Under a limit (ulimit -v or -d) the program starts; requests are served up to near the limit and then give NULL and
 * ENOMEM; what was allocated is intact; what is freed can be allocated again; and the heap leaves room for what else a
 * program needs: a thread's stack, a mapping of its own.
 *
 *   out_of_memory LIMIT-BYTES */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

struct block {
    struct block *next;
    size_t size;
};

/* Fills memory with blocks of one size, linked through themselves; says how many it got. */
static size_t exhaust(size_t size, size_t limit, struct block **all) {
    size_t count = 0;
    for (;;) {
        errno = 0;
        struct block *block = malloc(size);
        if (block == NULL) {
            EXPECT(errno == ENOMEM, "malloc(%zu) failed with errno %d", size, errno);
            return count;
        }
        block->next = *all;
        block->size = size;
        pattern_fill(block, sizeof *block, size, size + count);
        *all = block;
        count++;
        EXPECT(count * size <= limit, "%zu blocks of %zu bytes were served, beyond the limit", count, size);
    }
}

static void release(struct block **all, size_t count) {
    while (*all != NULL) {
        struct block *block = *all;
        count--;
        for (size_t at = sizeof *block; at + 8 <= block->size; at += 8) {
            uint64_t wanted = pattern_word(block->size + count, at / 8);
            EXPECT(memcmp((char *)block + at, &wanted, 8) == 0, "byte %zu of %zu changed", at, block->size);
        }
        *all = block->next;
        free(block);
    }
    EXPECT(count == 0, "%zu blocks are missing", count);
}

/* `block` is of 100000 bytes, taken while there was memory. */
static void failing_realloc(unsigned char *block, size_t limit) {
    pattern_fill(block, 0, 100000, 1);
    errno = 0;
    EXPECT(unseen(realloc(block, limit)) == NULL, "realloc to the whole limit gave a block");
    EXPECT(errno == ENOMEM, "realloc failed with errno %d", errno);
    EXPECT(pattern_mismatch(block, 100000, 1) == SIZE_MAX, "realloc failed and changed the block");
}

static void *in_thread(void *unused) {
    (void)unused;
    for (size_t i = 0; i < 1000; i++) {
        void *block = malloc(i);
        EXPECT(block != NULL, "malloc(%zu) failed in a thread", i);
        free(block);
    }
    return NULL;
}

static void room_for_others(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 20);
    pthread_t thread;
    EXPECT(pthread_create(&thread, &small, in_thread, NULL) == 0, "no room for a thread with a stack of 1 MiB");
    pthread_join(thread, NULL);
    void *own = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(own != MAP_FAILED, "no room for a mapping of 4 MiB");
    munmap(own, 4 << 20);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: out_of_memory LIMIT-BYTES");
    size_t limit = strtoul(arguments[1], NULL, 10);
    room_for_others();
    void *early = malloc(100000);
    EXPECT(early != NULL, "malloc(100000) failed");
    static const size_t sizes[] = {100, 5000, 100000, 1 << 20, 3 << 20, 32};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct block *all = NULL;
        size_t first = exhaust(sizes[i], limit, &all);
        /* The rest is for the program itself, its libraries, and what rounding takes. */
        EXPECT(first * sizes[i] >= limit / 4, "%zu blocks of %zu bytes were served, of a limit of %zu bytes", first,
               sizes[i], limit);
        struct block *none = NULL;
        EXPECT(exhaust(sizes[i], limit, &none) <= 1, "more could be had after malloc had failed");
        if (none != NULL) {
            free(none);
        }
        failing_realloc(early, limit);
        release(&all, first);
        size_t second = exhaust(sizes[i], limit, &all);
        EXPECT(second >= first - first / 10, "%zu blocks of %zu bytes were served at first, %zu after they were freed",
               first, sizes[i], second);
        release(&all, second);
        malloc_trim(0);
    }
    free(early);
    return 0;
}
