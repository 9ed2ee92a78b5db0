/* Five hundred threads have touched forty sizes once and sleep: what their caches keep is bounded for all together. */
#include "hazard.h"

enum { THREADS = 500, SIZES = 40, MOST_MIB = 32 }; /* what tcmalloc documents for all its caches together */

static pthread_barrier_t together;
static bool touching;

static void *touch_and_sleep(void *unused) {
    char *block[SIZES];
    char *volatile stack = (char[4096]){1};
    (void)stack;
    for (size_t i = 0, size = 16; touching && i < SIZES; i++, size += i < 8 ? 16 : size / 5) {
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, size);
    }
    for (size_t i = 0; touching && i < SIZES; i++) {
        free(block[i]);
    }
    pthread_barrier_wait(&together);
    for (;;) {
        pause();
    }
    return unused;
}

static size_t *held_kib; /* in memory that processes share */

static void run(void) {
    size_t before = resident_kib();
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (size_t t = 0; t < THREADS; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, &small, touch_and_sleep, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&together);
    long end = tasks_clock() + (touching ? 3000 : 0);
    do {
        tasks_sleep(50);
        *held_kib = resident_kib() - before;
    } while (tasks_clock() < end && *held_kib > MOST_MIB * 1024 / 2);
}

int main(void) {
    require_serving();
    held_kib = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(held_kib != MAP_FAILED, "no mapping");
    EXPECT(in_process(run) == 0, "threads that do not allocate ended badly");
    size_t idle = *held_kib;
    touching = true;
    EXPECT(in_process(run) == 0, "threads that allocate ended badly");
    size_t held = *held_kib > idle ? *held_kib - idle : 0;
    EXPECT(held <= MOST_MIB * 1024, "%zu KiB for each of %d threads, 3 s after their last call", held / THREADS,
           THREADS);
    printf("%zu KiB for each of %d threads\n", held / THREADS, THREADS);
    return 0;
}
