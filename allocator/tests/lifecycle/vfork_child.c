/* A child of vfork runs in its parent's memory, one after the other: what it allocates, frees and says about itself changes nothing for the
 * parent. (POSIX allows it next to nothing; launchers do it, and libc serves them.) */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../idle/field.h"
#include "expect.h"
#include "serving.h"
#include "swing.h"

enum { ROUNDS = 4, BLOCKS = 1500, BYTES = 300000 };
enum { STARTED = 2 }; /* the child's status when it has a thread that it did not start */

static void await(pid_t child) {
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child ended with wait status %#x",
           status);
}

/* Whatever of the library's it started would end with it, in the middle of its work. */
static void child_works(void) {
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = fork(); /* the keeper goes, and may come back after a while */
        if (child == 0) {
            _exit(0);
        }
        await(child);
        usleep(150000);
        child = vfork(); /* NOLINT: that is what it is about */
        if (child == 0) {
            swing(BLOCKS, BYTES);
            if (tasks_count() != 1) {
                _exit(STARTED);
            }
            execl("/proc/self/exe", "vfork_child", "nothing", (char *)NULL);
            _exit(1);
        }
        await(child);
    }
}

/* The same in a child of fork, which nobody has asked yet which process it is. */
static void childs_child_works(void) {
    pid_t child = fork();
    if (child == 0) {
        free(unseen(malloc(BYTES))); /* the heap is this process's */
        pid_t other = vfork(); /* NOLINT: likewise */
        if (other == 0) {
            enum { ONE_THREAD = 3 }; /* links of the folder: itself twice, and one for each thread */
            struct stat tasks;
            swing(BLOCKS, BYTES);
            _exit(stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > ONE_THREAD);
        }
        await(other);
        _exit(0);
    }
    await(child);
}

static void child_gives_up_privileges(void) {
    pid_t child = vfork(); /* NOLINT: likewise */
    if (child == 0) {
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        execl("/proc/self/exe", "vfork_child", "nothing", (char *)NULL);
        _exit(1);
    }
    await(child);
    EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0, "the parent has given them up as well");
}

int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1) {
        return 0;
    }
    require_serving();
    childs_child_works(); /* first: nobody has wished for a keeper yet */
    child_works();
    child_gives_up_privileges();
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 2, 0, 0, 0) != 0,
           "a wrong word gives them up"); /* nor does what is refused confine it */
    swing(BLOCKS, BYTES);
    EXPECT(tasks_await_keeper(true, 5000), "nobody gives the parent's memory back");
    /* Somebody who vanished inside would be waited for. */
    struct rlimit most = {(rlim_t)3 << 30, (rlim_t)3 << 30};
    EXPECT(setrlimit(RLIMIT_AS, &most) == 0, "errno %d", errno);
    alarm(60);
    EXPECT(malloc((size_t)4 << 30) == NULL, "there are 4 GiB under a limit of 3");
    return 0;
}
