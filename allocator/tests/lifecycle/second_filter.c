/* A program that never asks who it is, and whose filters kill whoever does: it puts on one filter and then another, each in every way; starts
 * under one and says that it wants no new privileges; forks under one that libc knows nothing of, as `keeper=0` is for. The library asks no
 * more than it does.
 *
 *   second_filter twice|started|unseen */
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults/filter.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { BLOCKS = 200, LARGE = 3 << 20 };

static const long asks[] = {SYS_getpid};
static const struct filter filter = {asks, 1, false, FILTER_KILLS};

static void work(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        char *block = unseen(malloc(i % 20 == 0 ? LARGE : 100 * i));
        EXPECT(block != NULL, "malloc failed");
        free(block);
    }
}

static void expect_ended_well(pid_t child, const char *what, int which) {
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child, "no child");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        expect_skip("no filter can be put on here");
    }
    EXPECT(status == 0, "%s, way %d: wait status %#x", what, which, (unsigned)status);
}

static void put_on_twice(enum filter_way way) {
    pid_t child = fork();
    if (child == 0) {
        filter_enter_by(&filter, way);
        work();
        filter_enter_by(&filter, way);
        work();
        _exit(0);
    }
    expect_ended_well(child, "a second filter", way);
}

static void start_under_one(char *program) {
    pid_t child = fork();
    if (child == 0) {
        filter_enter(&filter, false);
        execl(program, program, "under", (char *)NULL);
        _exit(1);
    }
    expect_ended_well(child, "no new privileges under a filter", 0);
}

static void fork_unseen(void) {
    work();
    pid_t child = fork();
    if (child == 0) {
        filter_enter_by(&filter, FILTER_BY_ITSELF);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            work();
            _exit(0);
        }
        int status = 0;
        _exit(grandchild > 0 && waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 1);
    }
    expect_ended_well(child, "a fork under a filter that was not seen", FILTER_BY_ITSELF);
}

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: second_filter twice|started|unseen");
    const char *what = arguments[1];
    if (strcmp(what, "under") == 0) {
        work();
        EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0, "no_new_privs was refused");
        work();
        return 0;
    }
    require_serving();
    if (strcmp(what, "twice") == 0) {
        for (int way = FILTER_BY_PRCTL; way <= FILTER_BY_SYSCALL_PRCTL; way++) {
            put_on_twice((enum filter_way)way);
        }
    } else if (strcmp(what, "started") == 0) {
        start_under_one(arguments[0]);
    } else {
        fork_unseen();
    }
    return 0;
}
