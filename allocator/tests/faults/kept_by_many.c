/* The kernel takes no memory back and unmaps none, the address space is used up, and many threads ask for more than lies free in one piece: each is
 * told so soon, though all of them have what is free asked for again. */
#include <pthread.h>
#include <sys/syscall.h>

#include "entry.h"
#include "expect.h"
#include "filter.h"
#include "resident.h"
#include "serving.h"

enum { THREADS = 64, TIMES = 2, BLOCKS = 400, SIZE = 300 << 10, ASKED = 700 << 10, ROOM = 1 << 20 };

static const long numbers[] = {SYS_madvise, SYS_munmap};
static const struct filter filter = {numbers, 2, false, 1 /* EPERM */};
static pthread_barrier_t together;

static void *ask(void *unused) {
    pthread_barrier_wait(&together);
    for (int i = 0; i < TIMES; i++) {
        free(unseen(malloc(ASKED)));
    }
    return unused;
}

int main(void) {
    require_serving();
    static char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = unseen(malloc(SIZE));
        EXPECT(block[i] != NULL, "no memory");
        *block[i] = 1;
    }
    static pthread_t thread[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    pthread_barrier_init(&together, NULL, THREADS + 1);
    filter_enter(&filter, true);
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], &small, ask, NULL) == 0, "no thread");
    }
    for (int i = 0; i < BLOCKS; i += 2) {
        free(block[i]);
    }
    (void)address_space_limit(ROOM);
    while (unseen(malloc(ASKED)) != NULL) { /* also what lay free in longer pieces */
    }
    pthread_barrier_wait(&together);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    EXPECT(unseen(malloc(SIZE)) != NULL, "what is free is refused");
    return 0;
}
