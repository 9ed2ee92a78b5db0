/* A block that the kernel moves out of the heap's addresses is counted once, at every moment: beside it there is room for what limit_mib leaves. Asked by
 * another thread while the library purges what lies behind the block, in the program's own madvise. The limit is in force already. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "entry.h"
#include "expect.h"
#include "figures.h"
#include "serving.h"

static sem_t asked, answered;
static atomic_bool asks;
static size_t limit;
static bool served;

int madvise(void *at, size_t bytes, int advice) {
    if (advice == MADV_DONTNEED && atomic_exchange(&asks, false)) {
        sem_post(&asked);
        while (sem_wait(&answered) != 0) {
        }
    }
    return (int)syscall(SYS_madvise, at, bytes, advice);
}

static void *ask(void *unused) {
    free(unseen(malloc(1))); /* the thread is known */
    while (sem_wait(&asked) != 0) {
    }
    void *block = unseen(malloc(limit / 17 * 2));
    served = block != NULL;
    free(block);
    sem_post(&answered);
    return unused;
}

int main(void) {
    require_serving();
    limit = figure("limit");
    pthread_t thread;
    EXPECT(limit > 0 && sem_init(&asked, 0, 0) == 0 && sem_init(&answered, 0, 0) == 0, "no limit, or no semaphores");
    EXPECT(pthread_create(&thread, NULL, ask, NULL) == 0, "no thread");
    char *block = unseen(malloc(limit / 17 * 6));
    EXPECT(block != NULL, "no block");
    block[0] = 1;
    asks = true;
    block = unseen(realloc(block, limit / 17 * 14));
    EXPECT(block != NULL && block[0] == 1, "it does not grow to %zu bytes", limit / 17 * 14);
    if (asks) { /* nothing lay behind it */
        sem_post(&asked);
    }
    pthread_join(thread, NULL);
    EXPECT(served, "%zu bytes of %zu were in use, and %zu are refused", limit / 17 * 14, limit, limit / 17 * 2);
    free(block);
    return 0;
}
