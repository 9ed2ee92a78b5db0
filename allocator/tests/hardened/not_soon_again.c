/* In a hardened process a freed block of any size is not given again before 32 others of its size were freed, nor does another begin behind or before it at a
 * distance that is always the same; yet large blocks up to a mebibyte keep their memory meanwhile, so that who takes many in turn faults in few pages. */
#include <sys/resource.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { PAIRS = 32, TURNS = 100, LARGE = 800000 };

static void take_in_turn(size_t size) {
    static void *seen[PAIRS + 1];
    for (int pair = 0; pair <= PAIRS; pair++) {
        seen[pair] = unseen(malloc(size));
        EXPECT(seen[pair] != NULL, "no memory");
        for (int i = 0; i < pair; i++) {
            EXPECT(seen[i] != seen[pair], "of blocks of %zu bytes the one freed %d frees ago is given again", size,
                   pair - i);
        }
        free(seen[pair]);
    }
}

static void check_gaps(void) {
    enum { BLOCKS = 64, MOST_ALIKE = 56 };
    static char *blocks[BLOCKS];
    int alike = 0;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = unseen(malloc(LARGE));
        alike += i > 1 && blocks[i] - blocks[i - 1] == blocks[i - 1] - blocks[i - 2];
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    EXPECT(alike < MOST_ALIKE, "%d of %d large blocks lie behind the one before as that lies behind another", alike,
           BLOCKS);
}

static long faults_in_turns(void) {
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int turn = 0; turn < TURNS; turn++) {
        volatile char *block = unseen(malloc(LARGE));
        for (size_t at = 0; at < LARGE; at += 4096) {
            block[at] = 1;
        }
        free((void *)block);
    }
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
}

int main(void) {
    require_serving();
    for (size_t size = 1; size < 2000000; size = size * 5 / 3 + 1) {
        take_in_turn(size);
    }
    check_gaps();
    (void)faults_in_turns();
    long faults = faults_in_turns();
    EXPECT(faults < TURNS * 20, "%d blocks of %d bytes in turn took %ld page faults", TURNS, LARGE, faults);
    return 0;
}
