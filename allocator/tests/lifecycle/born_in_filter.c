/* A program that starts threads after it has put itself under filters, which let through what docs/reference/system-calls.md names and what
 * libc itself calls for a thread, and kill for anything else. All that was drawn and looked up for the process is there by then. */
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "../faults/filter.h"
#include "churn.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { BEFORE = 5000, THREADS = 4, STEPS = 20000 };

static const long known[] = {
    /* libc's, for a thread and for the end */
    SYS_clone,
    SYS_clone3,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_set_tid_address,
    SYS_rt_sigprocmask,
    SYS_mprotect,
    SYS_membarrier,
    SYS_exit,
    SYS_exit_group,
    SYS_write,
    /* the allocator's */
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_futex,
};

static const struct filter filter = {known, sizeof known / sizeof *known, true, FILTER_KILLS};
static void *before[BEFORE];

static void *work(void *argument) {
    struct churn churn = {.random = (uintptr_t)argument, .most_bits = 24};
    for (size_t i = 0; i < STEPS; i++) {
        churn_step(&churn);
    }
    churn_end(&churn);
    return NULL;
}

/* One after the other and side by side: in caches that others have had, and in new ones. */
static void start_threads(void) {
    pthread_t thread[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&thread[t], NULL, work, (void *)(t + 1)) == 0, "no thread");
        if (t == 0) {
            pthread_join(thread[t], NULL);
        }
    }
    for (size_t t = 1; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
    }
}

int main(void) {
    require_serving();
    pthread_t first; /* libc prepares for threads with the first */
    EXPECT(pthread_create(&first, NULL, work, (void *)9) == 0 && pthread_join(first, NULL) == 0, "no thread");
    for (size_t i = 0; i < BEFORE; i++) {
        before[i] = unseen(malloc(1 + i % 3000));
        EXPECT(before[i] != NULL, "malloc failed");
    }
    filter_enter(&filter, false);
    start_threads();
    for (size_t i = 0; i < BEFORE; i++) { /* those among them that were chosen */
        free(before[i]);
    }
    start_threads();
    (void)freestone_purge();
    _exit(0);
}
