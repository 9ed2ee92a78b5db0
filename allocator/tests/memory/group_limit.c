/* In a control group with little memory the heap gives back what is free before it takes more. Run by in_group: a program that goes on keeping what it
 * has freed is killed. Whether a group has a limit is looked for once the heap is of some size, and not if nothing is to be asked. */
#include <stdbool.h>

#include "entry.h"
#include "expect.h"
#include "figures.h"
#include "serving.h"

enum { MIB = 1 << 20, HOLES = 180, HOLE = 600 << 10, WALL = 260 << 10, MORE = 100, LARGER = 900 << 10 };

static void *take(size_t size) {
    void *block = unseen(malloc(size));
    EXPECT(block != NULL, "no block of %zu bytes", size);
    return memset(block, 1, size);
}

static void *holes[HOLES], *walls[HOLES], *more[MORE];

/* Free memory between blocks in use, too short for what comes. */
static void leave_holes(void) {
    for (int i = 0; i < HOLES; i++) {
        holes[i] = take(HOLE);
        walls[i] = take(WALL);
    }
    for (int i = 0; i < HOLES; i++) {
        free(holes[i]);
    }
}

static void take_more(void) {
    for (int i = 0; i < MORE; i++) {
        more[i] = take(LARGER);
    }
}

/* The keeper brings it down beside the program. */
static void await_retained(size_t most) {
    enum { TRIES = 2000 };
    for (int tries = 0; figure("retained") > most; tries++) {
        EXPECT(tries < TRIES, "%zu bytes are retained, and %zu at most should be", figure("retained"), most);
        usleep(10000);
    }
}

/* The rest of the program's life: it ends without all of them. */
static void free_all(void) {
    for (int i = 0; i < HOLES; i++) {
        free(walls[i]);
    }
    for (int i = 0; i < MORE; i++) {
        free(more[i]);
    }
}

int main(int count, char **argument) {
    require_serving();
    EXPECT(count == 3, "what, and how many MiB the group has");
    size_t limit = (size_t)atol(argument[2]) * MIB;
    EXPECT(figure("group_limit") == 0, "it was looked for at once");
    leave_holes();
    bool alone = strcmp(argument[1], "found_alone") == 0; /* without a keeper */
    if (alone || strcmp(argument[1], "found") == 0) {
        EXPECT(figure("group_limit") == limit, "%zu is found, and it is %zu", figure("group_limit"), limit);
        take_more();
        if (!alone) {
            await_retained((limit - limit / 8 - figure("in_use")) / 3 + 4 * MIB);
        }
        EXPECT(figure("limit_refused") == 0, "%zu were refused", figure("limit_refused"));
        EXPECT(!alone || figure("limit_met") > 0, "what came fresh met no limit");
        free_all();
    } else if (strcmp(argument[1], "not_asked") == 0) {
        EXPECT(figure("group_limit") == 0, "it was looked for all the same");
    } else {
        EXPECT(false, "no such case");
    }
    return 0;
}
