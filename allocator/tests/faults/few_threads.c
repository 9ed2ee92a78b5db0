/* As many threads as the program needs and no more may exist: the keeper, of which it knows nothing, is not in the way.
 *
 *   few_threads [spawn]      with a keeper all the same; spawn: there is none, and processes are made in every way */
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <threads.h>

#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "swing.h"

enum { USERS = 100000, THREADS = 4, ROUNDS = 20, BLOCKS = 2000, SIZE = 9000 };

static atomic_bool go_on;

static void *work(void *unused) {
    while (!atomic_load(&go_on)) {
        tasks_sleep(1);
    }
    return unused;
}

extern char **environ;

static int run_thread(void *unused) {
    (void)unused;
    return 0;
}

static void spawn_all(void) {
    char *const arguments[] = {"true", NULL};
    pid_t process;
    swing(BLOCKS, SIZE);
    EXPECT(tasks_count() == 1, "a keeper has the program's place");
    int status = 0, error = posix_spawn(&process, "/bin/true", NULL, NULL, arguments, environ);
    EXPECT(error == 0 && waitpid(process, &status, 0) == process && status == 0, "posix_spawn: %s", strerror(error));
    EXPECT(system("exit 7") == 7 << 8, "system fails");
    FILE *pipe = popen("exit 7", "r");
    EXPECT(pipe != NULL && pclose(pipe) == 7 << 8, "popen fails");
    thrd_t thread;
    EXPECT(thrd_create(&thread, run_thread, NULL) == thrd_success && thrd_join(thread, NULL) == thrd_success,
           "thrd_create fails");
    process = vfork();
    if (process == 0) {
        _exit(0);
    }
    EXPECT(process > 0 && waitpid(process, &status, 0) == process && status == 0, "vfork: errno %d", errno);
}

int main(int count, char **arguments) {
    bool spawns = count == 2 && strcmp(arguments[1], "spawn") == 0;
    require_serving();
    if (geteuid() != 0) {
        expect_skip("only root can be a user that has no other processes");
    }
    const uid_t user = USERS + (uid_t)getpid(); /* other tests run beside this one */
    const rlim_t most = spawns ? 2 : THREADS + 1;
    const struct rlimit limit = {most, most};
    EXPECT(setgid(user) == 0 && setuid(user) == 0 && setrlimit(RLIMIT_NPROC, &limit) == 0, "errno %d", errno);
    if (spawns) {
        spawn_all();
        return 0;
    }
    size_t kept = 0;
    for (int round = 0; round < ROUNDS; round++) {
        swing(BLOCKS, SIZE);
        kept += tasks_count() > 1;
        pthread_t thread[THREADS], refused;
        atomic_store(&go_on, false);
        for (int i = 0; i < THREADS; i++) {
            int error = pthread_create(&thread[i], NULL, work, NULL);
            EXPECT(error == 0, "thread %d of round %d: %s", i, round, strerror(error));
        }
        EXPECT(pthread_create(&refused, NULL, work, NULL) == EAGAIN, "one more than there may be");
        atomic_store(&go_on, true);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
        }
        tasks_sleep(100);
    }
    EXPECT(kept > 0, "there was no keeper in the way");
    return 0;
}
