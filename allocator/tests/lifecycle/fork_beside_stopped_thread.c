/* A thread is stopped by a signal, as collectors of garbage stop theirs, wherever it is in realloc; its handler waits until it may go on. A fork
 * beside it comes back after a while, and its child, of which nobody knows what it has copied, allocates and frees. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { ROUNDS = 2, BLOCKS = 1000, SMALL = 200 << 20, LARGE = 264 << 20 };

static int stopped[2], released[2];

static void stop(int number) {
    char word = (char)number;
    (void)!write(stopped[1], &word, 1);
    (void)!read(released[0], &word, 1);
}

static void *resize(void *unused) {
    void *block = malloc(SMALL);
    for (;;) {
        block = realloc(block, LARGE);
        EXPECT(block != NULL, "no memory");
        block = realloc(block, SMALL);
        EXPECT(block != NULL, "no memory");
    }
    return unused;
}

__attribute__((noreturn)) static void work(void) {
    static char *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(16 + 40 * i);
        EXPECT(block[i] != NULL, "no memory in the child");
        memset(block[i], (int)i, 16 + 40 * i);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        EXPECT(block[i][15 + 40 * i] == (char)i, "block %zu has changed", i);
        free(block[i]);
    }
    _exit(0);
}

int main(void) {
    require_serving();
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
    EXPECT(pipe(stopped) == 0 && pipe(released) == 0 && sigaction(SIGUSR1, &action, NULL) == 0, "no pipes");
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, resize, NULL) == 0, "no thread");
    for (int round = 0; round < ROUNDS; round++) {
        char word;
        usleep(20000);
        EXPECT(pthread_kill(thread, SIGUSR1) == 0 && read(stopped[0], &word, 1) == 1, "the thread did not stop");
        pid_t child = fork();
        if (child == 0) {
            work();
        }
        int status;
        EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
               "the child ended with wait status %#x", (unsigned)status);
        EXPECT(write(released[1], &word, 1) == 1, "the thread is not released");
    }
    _exit(0);
}
