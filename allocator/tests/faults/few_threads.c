/* As many threads as the program needs and no more may exist: the keeper, of which it knows nothing, is not in the way. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

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

int main(void) {
    require_serving();
    if (geteuid() != 0) {
        expect_skip("only root can be a user that has no other processes");
    }
    const uid_t user = USERS + (uid_t)getpid(); /* other tests run beside this one */
    const struct rlimit limit = {THREADS + 1, THREADS + 1};
    EXPECT(setgid(user) == 0 && setuid(user) == 0 && setrlimit(RLIMIT_NPROC, &limit) == 0, "errno %d", errno);
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
