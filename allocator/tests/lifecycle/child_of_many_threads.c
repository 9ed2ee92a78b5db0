/* In the child of a fork the first slow path costs no more if the parent has many threads: what those have in their caches stays the parent's
 * memory. Counted in page faults, each of which is a page copied. Later slow paths of the child take it over, a piece at a time, and a trim
 * all of it. */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum {
    THREADS = 1000,
    CACHED = 50,
    STACK = 65536,
    FIRST_MOST = 60, /* the program's own and the dynamic linker's included; one for each thread would be 800 */
    PAIRS = 3000,
    TURNS = 20,
    LATER_MOST = 8000, /* glibc's malloc has 5,000 beside 4,000 threads */
    LIVE_MOST = 1000, /* bytes that libc has for a thread */
};

static pthread_barrier_t have_cached;

static void *cache_some(void *unused) {
    void *block[CACHED];
    for (size_t i = 0; i < CACHED; i++) {
        block[i] = unseen(malloc(16 + i * 20));
        EXPECT(block[i] != NULL, "no memory");
    }
    for (size_t i = 0; i < CACHED; i++) {
        free(block[i]);
    }
    pthread_barrier_wait(&have_cached);
    for (;;) {
        pause();
    }
    return unused;
}

static long faults(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0, "no usage");
    return usage.ru_minflt;
}

static void allocate_and_free(void) {
    static void *block[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        block[i] = unseen(malloc(16 + (size_t)i % 1000));
        EXPECT(block[i] != NULL, "no memory");
    }
    for (int i = 0; i < PAIRS; i++) {
        free(block[i]);
    }
}

static size_t in_use(void) {
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    return stats.in_use;
}

static void be_child(void) {
    size_t cached = in_use();
    EXPECT(cached > (size_t)THREADS * LIVE_MOST, "the threads have cached nothing: %zu bytes are in use", cached);
    long before = faults();
    char *block = unseen(malloc(777));
    EXPECT(block != NULL, "no memory");
    *block = 1;
    long first = faults() - before;
    EXPECT(first <= FIRST_MOST, "the first block takes %ld faults in a child of %d threads", first, THREADS);
    for (int turn = 0; turn < TURNS; turn++) {
        allocate_and_free();
    }
    long later = faults() - before;
    EXPECT(later <= LATER_MOST, "%d pairs take %ld faults in a child of %d threads", TURNS * PAIRS, later, THREADS);
    free(block);
    freestone_purge();
    EXPECT(in_use() < (size_t)THREADS * LIVE_MOST, "%zu bytes are in use after a purge, of what %d threads had cached",
           in_use(), THREADS);
    _exit(0);
}

int main(void) {
    require_serving();
    pthread_attr_t attributes;
    EXPECT(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, STACK) == 0 &&
               pthread_barrier_init(&have_cached, NULL, THREADS + 1) == 0,
           "no attributes");
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, cache_some, NULL) != 0) {
            expect_skip("%d threads cannot be made here", THREADS);
        }
    }
    pthread_barrier_wait(&have_cached);
    pid_t child = fork();
    if (child == 0) {
        be_child();
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "wait status %#x", (unsigned)status);
    _exit(0);
}
