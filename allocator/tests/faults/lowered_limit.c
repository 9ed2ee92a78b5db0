/* A program lowers its own limit on address space while it runs, far above what it uses, as servers do before they
 * take requests: threads, mappings and blocks are still to be had, nearly up to the limit; and more when it is
 * raised again. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { BEFORE = 2000, BLOCK = 100000, BLOCKS_MOST = 1 << 16 };

static unsigned char *before[BEFORE];
static unsigned char *block[BLOCKS_MOST];

static size_t size_of(size_t i) { return 1 + i * 37 % 9000; }

static void set_limit(rlim_t bytes) {
    struct rlimit limit;
    EXPECT(getrlimit(RLIMIT_AS, &limit) == 0, "errno %d", errno);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "errno %d", errno);
}

static void *in_thread(void *unused) {
    for (size_t i = 0; i < 3000; i++) {
        void *some = malloc(i * 7);
        EXPECT(some != NULL, "malloc(%zu) failed in a thread", i * 7);
        free(some);
    }
    return unused;
}

static void live_under(size_t limit) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, in_thread, NULL);
    EXPECT(error == 0, "no thread under %zu MiB, error %d", limit >> 20, error);
    pthread_join(thread, NULL);
    void *own = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(own != MAP_FAILED, "no mapping of 16 MiB under %zu MiB", limit >> 20);
    munmap(own, 16 << 20);
    static const size_t large[] = {300000, 3 << 20, 40 << 20, 140 << 20};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        void *some = malloc(large[i]);
        EXPECT(some != NULL, "malloc(%zu) failed under %zu MiB", large[i], limit >> 20);
        free(some);
    }
    size_t served = 0;
    errno = 0;
    while (served < BLOCKS_MOST && (block[served] = malloc(BLOCK)) != NULL) {
        pattern_fill(block[served], 0, 64, served);
        served++;
    }
    EXPECT(served < BLOCKS_MOST && errno == ENOMEM, "%zu blocks, errno %d", served, errno);
    EXPECT(served * BLOCK >= limit / 2 && served * BLOCK <= limit, "%zu MiB were served under %zu",
           served * BLOCK >> 20, limit >> 20);
    for (size_t i = 0; i < served; i++) {
        EXPECT(pattern_mismatch(block[i], 64, i) == SIZE_MAX, "block %zu has changed", i);
        free(block[i]);
    }
    (void)malloc_trim(0);
    EXPECT(pthread_create(&thread, NULL, in_thread, NULL) == 0, "no thread after all was freed");
    pthread_join(thread, NULL);
}

int main(void) {
    require_serving();
    for (size_t i = 0; i < BEFORE; i++) {
        before[i] = malloc(size_of(i));
        EXPECT(before[i] != NULL, "malloc failed");
        pattern_fill(before[i], 0, size_of(i), i);
    }
    static const size_t limits[] = {(size_t)1 << 30, (size_t)4 << 30};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        set_limit(limits[i]);
        live_under(limits[i]);
    }
    set_limit(RLIM_INFINITY);
    void *large = malloc((size_t)2 << 30);
    EXPECT(large != NULL, "malloc of 2 GiB fails after the limit was raised");
    free(large);
    for (size_t i = 0; i < BEFORE; i++) {
        EXPECT(pattern_mismatch(before[i], size_of(i), i) == SIZE_MAX, "block %zu has changed", i);
        free(before[i]);
    }
    return 0;
}
