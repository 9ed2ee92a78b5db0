/* In a control group with little memory the heap gives back what is free before it takes more. Run by in_group: a program that goes on keeping what it
 * has freed is killed. Whether a group has a limit is looked for once the heap is of some size, and not if nothing is to be asked. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>

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

/* Pages of small blocks, seven of eight of which are free, while more is taken than the group has beside them: in one piece or in many. */
static void free_pages_in_slabs(size_t limit, size_t piece) {
    enum { SPARSE = 8, PAGES_MOST = 1 << 16 };
    static char *pages[PAGES_MOST];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = limit / 4 * 3 / page, pieces = limit / 2 / piece;
    EXPECT(count <= PAGES_MOST && pieces <= MORE, "%zu pages, %zu pieces", count, pieces);
    for (size_t i = 0; i < count; i++) {
        pages[i] = take(page);
    }
    for (size_t i = 0; i < count; i++) {
        if (i % SPARSE != 0) {
            free(pages[i]);
        }
    }
    for (size_t i = 0; i < pieces; i++) {
        more[i] = take(piece);
    }
    size_t held = figure("held"), room = limit - limit / 16; /* some of what is left to others may be used at first */
    EXPECT(held <= room, "%zu bytes are held of %zu, and %zu free ones are in memory", held, limit,
           figure("free_blocks") - figure("clean"));
    for (size_t i = 0; i < pieces; i++) {
        free(more[i]);
    }
    for (size_t i = 0; i < count; i += SPARSE) {
        free(pages[i]);
    }
}

/* From where the group is seen no more, though /proc is there. */
static void go_into_chroot(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/tmp", "tmpfs", 0, NULL) != 0) {
        expect_skip("nothing may be mounted here");
    }
    EXPECT(chdir("/tmp") == 0 && mkdir("proc", 0755) == 0 && mount("proc", "proc", "proc", 0, NULL) == 0,
           "no /proc: errno %d", errno);
    EXPECT(chroot(".") == 0, "errno %d", errno);
}

static void in_chroot(size_t limit) {
    for (int i = 0; i < 2 * MORE; i++) {
        void *block = take(LARGER / 2);
        if (i == MORE / 2) {
            EXPECT(figure("group_limit") == limit, "%zu is found", figure("group_limit"));
            go_into_chroot();
        }
        holes[i % HOLES] = block;
    }
    EXPECT(figure("group_limit") == limit, "%zu is known in a chroot", figure("group_limit"));
}

static void *allocate_too(void *unused) {
    free(take(HOLE));
    return unused;
}

int main(int count, char **argument) {
    require_serving();
    EXPECT(count == 3, "what, and how many MiB the group has");
    size_t limit = (size_t)atol(argument[2]) * MIB;
    EXPECT(figure("group_limit") == 0, "it was looked for at once");
    if (strcmp(argument[1], "in_chroot") == 0) {
        in_chroot(limit);
        return 0;
    }
    if (strcmp(argument[1], "beside_threads") ==
        0) { /* one of which may close what the library opens, and open a file of its own there */
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, allocate_too, NULL) == 0 && pthread_join(thread, NULL) == 0, "no thread");
        leave_holes();
        EXPECT(figure("group_limit") == 0, "files were opened beside threads");
        free_all();
        return 0;
    }
    if (strcmp(argument[1], "slabs") == 0 || strcmp(argument[1], "slabs_by_parts") == 0) {
        free_pages_in_slabs(limit, argument[1][strlen("slabs")] == '\0' ? limit / 2 : MIB);
        EXPECT(figure("limit_refused") == 0, "%zu were refused", figure("limit_refused"));
        return 0;
    }
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
