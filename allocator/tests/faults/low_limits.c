/* A program that runs under some limit on address space runs under each that is higher, as far as a few mebibytes beyond. Tried by running
 * itself, from limits under which nothing can be loaded on. */
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { LEAST_KIB = 2000, STEP_KIB = 100, MORE_KIB = 6000, MOST_KIB = 20000 };

static int work(void) {
    char *small = unseen(malloc(1000)), *large = unseen(malloc(100000));
    if (small == NULL || large == NULL) {
        return 1;
    }
    small[999] = large[99999] = 1;
    free(small);
    free(large);
    return 0;
}

static bool runs_within(const char *program, rlim_t kib) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {kib << 10, kib << 10};
        EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
        (void)freopen("/dev/null", "w", stderr); /* where the loader says that it has no room */
        execl(program, program, "work", (char *)NULL);
        _exit(1);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child, "no child");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int count, char **arguments) {
    if (count > 1) {
        return work();
    }
    require_serving();
    rlim_t kib = LEAST_KIB;
    while (kib < MOST_KIB && !runs_within(arguments[0], kib)) {
        kib += STEP_KIB;
    }
    EXPECT(kib < MOST_KIB, "nothing runs within %d KiB", MOST_KIB);
    rlim_t first = kib;
    for (; kib < first + MORE_KIB; kib += STEP_KIB) {
        EXPECT(runs_within(arguments[0], kib), "runs within %lu KiB, and not within %lu", (unsigned long)first,
               (unsigned long)kib);
    }
    return 0;
}
