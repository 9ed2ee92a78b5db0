/* A process forks while another thread holds the lock that dl_iterate_phdr takes, as one that throws an exception may: glibc does not free
 * that lock in the child. The child's blocks have their traces noted all the same, and it ends. Neither the program nor its libraries have
 * allocated anything before the library's constructor ran. */
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { BLOCKS = 1000, PATIENCE_SECONDS = 60 };

static atomic_bool searching, done;

static int wait_inside(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    atomic_store(&searching, true);
    while (!atomic_load(&done)) {
        usleep(1000);
    }
    return 1;
}

static void *search(void *unused) {
    EXPECT(dl_iterate_phdr(wait_inside, NULL) == 1, "the search was not ended by its function");
    return unused;
}

int main(void) {
    require_serving();
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, search, NULL) == 0, "no thread");
    while (!atomic_load(&searching)) {
        usleep(1000);
    }
    pid_t child = fork();
    EXPECT(child >= 0, "fork failed");
    if (child == 0) {
        alarm(PATIENCE_SECONDS);
        for (size_t i = 0; i < BLOCKS; i++) {
            free(unseen(malloc(16 + i)));
        }
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child, "waitpid failed");
    EXPECT(status == 0, "the child ended with status 0x%x", (unsigned)status);
    atomic_store(&done, true);
    pthread_join(thread, NULL);
    return 0;
}
