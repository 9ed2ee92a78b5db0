/* Address space is limited while the program runs, and a block so long that it would have a mapping of its own finds room among the addresses
 * that the library has.
 *
 *   long_blocks_at_limit hole     200 MiB of large blocks are free again before one in use: 130 and 190 MiB
 *   long_blocks_at_limit growth   one block grows by 12 MiB at a time to nine tenths of the limit
 *   long_blocks_at_limit whole    all is free again, and nearly as much is asked for in one piece */
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum { MIB = 1 << 20 };

static void hole(void) {
    enum { BLOCKS = 10, EACH = 20 * MIB, KEPT_MOST = 200 };
    static const size_t wanted[] = {(size_t)130 * MIB, (size_t)190 * MIB};
    void *block[BLOCKS], *kept[KEPT_MOST];
    (void)address_space_limit((size_t)300 * MIB);
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = unseen(malloc(EACH));
        EXPECT(block[i] != NULL, "no block %d", i);
        memset(block[i], 1, EACH);
    }
    int count = 0;
    do { /* until one lies behind */
        kept[count] = unseen(malloc(200 * 1024));
        EXPECT(kept[count] != NULL, "no small block");
    } while ((uintptr_t)kept[count] < (uintptr_t)block[BLOCKS - 1] && ++count < KEPT_MOST);
    for (int i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char *large = unseen(malloc(wanted[i]));
        EXPECT(large != NULL, "no %zu bytes, where 200 MiB are free", wanted[i]);
        large[0] = large[wanted[i] - 1] = 1;
        char *less = unseen(realloc(large, wanted[i] - MIB));
        EXPECT(less == large && less[0] == 1, "it has moved");
        char *again = unseen(realloc(less, wanted[i]));
        EXPECT(again != NULL && again[0] == 1, "it has lost its room");
        free(again);
    }
    EXPECT(unseen(malloc((size_t)1 << 62)) == NULL && unseen(malloc((size_t)1 << 47)) == NULL, "more than there is");
}

static void growth(void) {
    enum { LIMIT = 165 * MIB, STEP = 12 * MIB };
    (void)address_space_limit(LIMIT);
    size_t size = 10 * MIB;
    unsigned char *block = unseen(malloc(size));
    EXPECT(block != NULL, "no block");
    memset(block, 1, size);
    for (;;) {
        unsigned char *more = unseen(realloc(block, size + STEP));
        if (more == NULL) {
            break;
        }
        for (size_t at = 0; at < size; at += 4096) {
            EXPECT(more[at] == 1, "byte %zu has changed", at);
        }
        memset(more + size, 1, STEP);
        block = more;
        size += STEP;
    }
    EXPECT(size >= (size_t)LIMIT / 10 * 9, "it grew to %zu bytes of %d", size, LIMIT);
    EXPECT(unseen(realloc(block, (size_t)1 << 47)) == NULL && unseen(realloc(block, (size_t)1 << 62)) == NULL,
           "it grew beyond all there is");
    EXPECT(block[size - 1] == 1, "what was refused has changed it");
    free(block);
}

/* A heap of `blocks` blocks of a mebibyte is free again, and a block of nearly all its addresses is asked for. */
static void whole_of(int blocks) {
    static void *block[100];
    size_t before = address_space_bytes();
    for (int i = 0; i < blocks; i++) {
        block[i] = unseen(malloc(MIB));
        EXPECT(block[i] != NULL, "no block %d", i);
        memset(block[i], 1, MIB);
    }
    (void)address_space_limit(64 * 1024);
    size_t wanted = (address_space_bytes() - before) / 100 * 93;
    for (int i = 0; i < blocks; i++) {
        free(block[i]);
    }
    char *large = unseen(malloc(wanted));
    EXPECT(large != NULL, "no %zu bytes after %d blocks", wanted, blocks);
    large[0] = large[wanted - 1] = 1;
}

static void whole(void) {
    for (int blocks = 20; blocks <= 90; blocks += 5) {
        pid_t child = fork();
        if (child == 0) {
            whole_of(blocks);
            _exit(0);
        }
        int status = 0;
        EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "wait status %#x", (unsigned)status);
    }
}

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: long_blocks_at_limit hole|growth|whole");
    require_serving();
    free(unseen(malloc(1)));
    if (strcmp(arguments[1], "hole") == 0) {
        hole();
    } else if (strcmp(arguments[1], "growth") == 0) {
        growth();
    } else {
        whole();
    }
    return 0;
}
