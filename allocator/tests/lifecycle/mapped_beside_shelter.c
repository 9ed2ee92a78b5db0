/* A child that no handler of a fork has seen lives on memory of its own beside what it inherits: blocks of the parent's that lie right
 * behind that, mappings of their own, are told from it wherever they start.
 *
 *   mapped_beside_shelter */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { FORKS = 60, STEP = 28672, OWN = 300000 };

static void *work(void *argument) {
    for (;;) { /* so that the child has not all of its parent's threads */
        unsigned char *block = unseen(malloc(3000));
        *block = 1;
        free(block);
        usleep(100);
    }
    return argument;
}

static void live_in_child(unsigned char *inherited, size_t bytes) {
    unsigned char *own[2];
    for (size_t i = 0; i < 2; i++) {
        own[i] = unseen(malloc(OWN));
        EXPECT(own[i] != NULL && malloc_usable_size(own[i]) >= OWN, "malloc fails in the child");
        memset(own[i], 2, OWN);
    }
    EXPECT(malloc_usable_size(inherited) >= bytes && inherited[0] == 5 && inherited[bytes - 1] == 6,
           "the block has changed");
    free(inherited);
    for (size_t i = 0; i < 2; i++) {
        EXPECT(own[i][0] == 2 && own[i][OWN - 1] == 2, "the child's own block has changed");
        free(own[i]);
    }
}

int main(void) {
    require_serving();
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
    unsigned char *kept[FORKS];
    for (size_t i = 0; i < FORKS; i++) {
        size_t bytes = ((size_t)130 << 20) + i * STEP;
        kept[i] = unseen(calloc(1, bytes));
        EXPECT(kept[i] != NULL, "calloc(%zu) failed", bytes);
        kept[i][0] = 5;
        kept[i][bytes - 1] = 6;
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        EXPECT(child >= 0, "fork failed");
        if (child == 0) {
            live_in_child(kept[i], bytes);
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "child %zu: wait status %#x", i, (unsigned)status);
        if (i % 2 == 1) {
            free(kept[i]);
        }
    }
    return 0;
}
