/* A child made by _Fork or by the system call itself, where no handler runs, confines itself first thing, as sandboxes do: the library has heard of
 * the filter, and makes no call that it kills for.
 *
 *   filter_in_unannounced_child _Fork|call */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../faults/filter.h"
#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "swing.h"

#pragma weak _Fork
extern pid_t _Fork(void); /* since glibc 2.34 and musl 1.2.2 */

enum { ROUNDS = 30, BLOCKS = 64, SIZE = 300000, NAP_MS = 10 };

static const long punished[] = {SYS_clone, SYS_capset, SYS_sched_setaffinity, SYS_setpriority};
static const struct filter filter = {punished, sizeof punished / sizeof *punished, false, FILTER_KILLS};

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: filter_in_unannounced_child _Fork|call");
    bool by_libc = strcmp(arguments[1], "_Fork") == 0;
    if (by_libc && _Fork == NULL) {
        expect_skip("this libc has no _Fork");
    }
    free(unseen(malloc(100)));
    pid_t child = by_libc ? _Fork() : (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    EXPECT(child >= 0, "no process");
    if (child == 0) {
        filter_enter_by(&filter, FILTER_BY_PRCTL);
        for (int round = 0; round < ROUNDS; round++) {
            swing(BLOCKS, SIZE);
            tasks_sleep(NAP_MS);
        }
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status 0x%x", (unsigned)status);
    return 0;
}
