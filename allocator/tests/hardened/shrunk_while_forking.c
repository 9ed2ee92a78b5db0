/* realloc to fewer bytes while another thread forks and no memory is left to move to, in a hardened process: the block stays as it is, as who shrinks
 * does not expect to fail. */
#include <pthread.h>
#include <sys/wait.h>

#include "../entry.h"
#include "../expect.h"
#include "../lifecycle/first_library.h"
#include "../serving.h"
#include "use_up.h"

static const size_t from[] = {1000, 20000, 200000, 300000, 3000000};
enum { BLOCKS = sizeof from / sizeof *from, BYTE = 7 };

static unsigned char *block[BLOCKS];
static pthread_barrier_t together;

static void *shrink_all(void *unused) {
    pthread_barrier_wait(&together);
    for (size_t i = 0; i < BLOCKS; i++) {
        unsigned char *resized = unseen(realloc(block[i], from[i] / 3));
        EXPECT(resized != NULL, "%zu bytes cannot shrink to %zu", from[i], from[i] / 3);
        block[i] = resized;
    }
    pthread_barrier_wait(&together);
    return unused;
}

/* The library's own handler, which closes the gate, has run. */
static void let_it_shrink(void) {
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
}

int main(void) {
    require_serving();
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = unseen(malloc(from[i]));
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], BYTE, from[i]);
    }
    pthread_t thread;
    pthread_barrier_init(&together, NULL, 2);
    EXPECT(pthread_create(&thread, NULL, shrink_all, NULL) == 0, "no thread");
    use_up(8 << 20);
    first_library_while_forking = let_it_shrink;
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "wait status %#x", (unsigned)status);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t at = 0; at < from[i] / 3; at++) {
            EXPECT(block[i][at] == BYTE, "byte %zu of %zu has changed", at, from[i] / 3);
        }
        free(block[i]);
    }
    (void)freestone_check();
    return 0;
}
