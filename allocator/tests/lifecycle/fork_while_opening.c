/* A signal comes while the process's first allocation opens the library, and its handler forks: neither process waits for the frame that was
 * interrupted, and both go on to allocate. The signal is that of a stopped system call, so it comes at each place there is. */
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../faults/gate.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "swing.h"

enum { PATIENCE_SECONDS = 20, BLOCKS = 500, SIZE = 3000 };

static const long stopped[] = {SYS_mmap, SYS_munmap, SYS_madvise};

static volatile bool forks; /* seen by the handler */
static volatile int calls, forked_at;
static volatile pid_t child = -1;

static int fork_once(long number, const long arguments[6]) {
    (void)number;
    (void)arguments;
    int call = calls;
    calls = call + 1;
    if (forks && call == forked_at) {
        forks = false;
        child = fork();
        void *block = unseen(malloc(100));
        EXPECT(block != NULL, "no memory in the handler");
        free(block);
        if (child == 0) {
            alarm(PATIENCE_SECONDS);
        }
    }
    return 0;
}

/* The process's first allocation; 1 when something fails, 2 when it makes fewer calls. */
static int play(int at) {
    alarm(PATIENCE_SECONDS);
    gate_close(stopped, sizeof stopped / sizeof *stopped, false, fork_once);
    forked_at = at;
    forks = true;
    swing(BLOCKS, SIZE);
    bool any = !forks;
    forks = false;
    int status = 0;
    if (child > 0) {
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status 0x%x",
               (unsigned)status);
    }
    return any ? 0 : 2;
}

static int start_player(const char *program, int at) {
    char number[8];
    snprintf(number, sizeof number, "%d", at);
    pid_t player = fork();
    if (player == 0) {
        execl("/proc/self/exe", program, number, NULL);
        _exit(1);
    }
    int status = 0;
    EXPECT(player > 0 && waitpid(player, &status, 0) == player && WIFEXITED(status), "at call %d: status 0x%x", at,
           (unsigned)status);
    return WEXITSTATUS(status);
}

int main(int count, char **arguments) {
    enum { CALLS_MOST = 12, CALLS_LEAST = 3 };
    if (count == 2) {
        return play(atoi(arguments[1]));
    }
    require_serving();
    int status = 0, at = 0;
    for (; at < CALLS_MOST && status != 2; at++) {
        status = start_player(arguments[0], at);
        EXPECT(status != 1, "a fork within call %d of the first allocation", at);
    }
    EXPECT(at > CALLS_LEAST, "only %d calls were seen", at);
    return 0;
}
