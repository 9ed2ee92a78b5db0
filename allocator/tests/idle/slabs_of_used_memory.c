/* Threads of many heaps make slabs of large blocks out of memory that was in use, and take one block of each: what nobody takes of them goes back to
 * the kernel while the program sleeps. */
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "tasks.h"

enum { THREADS = 32, USED_BYTES = 1000 << 10, RESIDENT_KIB_MOST = 80 << 10 };

static const size_t sizes[] = {262144, 229376, 196608, 163840, 131072, 114688, 98304,
                               81920,  65536,  57344,  49152,  40960,  32768};
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static void *work(void *unused) {
    char *first = unseen(malloc(24)); /* the thread's heap is chosen */
    pthread_barrier_wait(&together);
    pthread_mutex_lock(&turn); /* what one has freed the same takes */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *used = unseen(malloc(USED_BYTES));
        EXPECT(used != NULL, "no memory");
        memset(used, 1, USED_BYTES);
        free(used);
        char *block = unseen(malloc(sizes[i]));
        EXPECT(block != NULL, "no memory");
        *block = 1;
    }
    pthread_mutex_unlock(&turn);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    free(first);
    return unused;
}

int main(void) {
    require_serving();
    static pthread_t thread[THREADS];
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, work, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    size_t left_kib = tasks_await_resident(RESIDENT_KIB_MOST);
    EXPECT(left_kib <= RESIDENT_KIB_MOST, "%zu KiB are resident", left_kib);
    pthread_barrier_wait(&together);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}
