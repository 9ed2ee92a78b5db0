/* A hardened program that forks often: blocks of a child lie in few pages, of which it makes copies, though nobody knows in which. */
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { CHILDREN = 20, BLOCKS = 30, SIZES = 4, FAULTS_MOST = 40 };

static const size_t sizes[SIZES] = {24, 56, 120, 248};

static void take_some(void) {
    for (int i = 0; i < BLOCKS * SIZES; i++) {
        size_t size = sizes[i % SIZES];
        memset(unseen(malloc(size)), 1, size);
    }
}

static long faults_of_children(int blocks) {
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        pid_t child = fork();
        EXPECT(child >= 0, "no process");
        if (child == 0) {
            free(unseen(malloc(1)));
            if (blocks > 0) {
                take_some();
            }
            _exit(0);
        }
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "it ended with status 0x%x", (unsigned)status);
    }
    getrusage(RUSAGE_CHILDREN, &after);
    return (after.ru_minflt - before.ru_minflt) / CHILDREN;
}

int main(void) {
    require_serving();
    for (int i = 0; i < 10; i++) {
        take_some();
    }
    (void)faults_of_children(0);
    long none = faults_of_children(0), some = faults_of_children(BLOCKS);
    EXPECT(some - none < FAULTS_MOST, "%d blocks of %d sizes each cost a child %ld page faults, and %ld without them",
           BLOCKS, SIZES, some, none);
    return 0;
}
