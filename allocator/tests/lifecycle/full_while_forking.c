/* While one thread forks, others allocate although the kernel gives the process no further mapping. The heap has enough free blocks, and a
 * fork ends: each allocation waits for that and succeeds, by every entry point and also as the first one of a thread.
 *
 *   full_while_forking limit | mappings   what keeps the kernel from mapping more: RLIMIT_AS or the number of mappings
 *   full_while_forking mappings small     no large blocks: a hardened heap needs a mapping to open one
 *   full_while_forking awaited            a handler of the fork waits for a thread that allocates: it gets NULL after some seconds, the next
 *                                         allocations at once, and the fork goes on */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "first_library.h"
#include "pattern.h"
#include "serving.h"

enum { FREE = 4000, SMALL = 1000, TAKEN = 300, LARGE = 1500000, GROWN = 3000000, ALIGNMENT = 4096 };

static pthread_barrier_t closed, served;
static bool waits_for_thread;

/* Behind the library's own handler, which closes the gate. */
static void while_forking(void) {
    pthread_barrier_wait(&closed);
    if (waits_for_thread) {
        pthread_barrier_wait(&served);
    } else {
        usleep(50000);
    }
}

static _Thread_local void *keep[TAKEN];

static void by_malloc(void) {
    for (int i = 0; i < TAKEN; i++) { /* more than any magazine holds */
        keep[i] = malloc(SMALL);
        EXPECT(keep[i] != NULL, "malloc(%d) is NULL beside a fork, after %d blocks", SMALL, i);
    }
    for (int i = 0; i < TAKEN; i++) {
        free(keep[i]);
    }
}

static void by_calloc(void) {
    for (int i = 0; i < TAKEN; i++) {
        keep[i] = calloc(5, SMALL);
        EXPECT(keep[i] != NULL && pattern_not_zero(keep[i], 5 * SMALL) == SIZE_MAX, "calloc fails beside a fork");
    }
    for (int i = 0; i < TAKEN; i++) {
        free(keep[i]);
    }
}

static void by_aligned_alloc(void) {
    for (int i = 0; i < TAKEN; i++) {
        keep[i] = aligned_alloc(ALIGNMENT, ALIGNMENT);
        EXPECT(keep[i] != NULL && (uintptr_t)keep[i] % ALIGNMENT == 0, "aligned_alloc fails beside a fork");
    }
    for (int i = 0; i < TAKEN; i++) {
        free(keep[i]);
    }
}

static void by_large_malloc(void) {
    void *block = unseen(malloc(LARGE));
    EXPECT(block != NULL, "malloc(%d) is NULL beside a fork", LARGE);
    free(block);
}

static void by_large_calloc(void) {
    void *block = unseen(calloc(1, LARGE));
    EXPECT(block != NULL && pattern_not_zero(block, LARGE) == SIZE_MAX, "calloc(%d) fails beside a fork", LARGE);
    free(block);
}

static void *to_be_resized;

static void by_realloc(void) {
    void *block = unseen(realloc(to_be_resized, GROWN));
    EXPECT(block != NULL && pattern_mismatch(block, LARGE, 1) == SIZE_MAX, "realloc(%d) fails beside a fork", GROWN);
    free(block);
}

static void in_vain(void) {
    for (int i = 0; i < 3; i++) {
        errno = 0;
        void *block = unseen(malloc(GROWN));
        EXPECT(block == NULL && errno == ENOMEM, "malloc waits for no fork that waits for it: %p, errno %d", block,
               errno);
    }
    pthread_barrier_wait(&served);
}

static void (*const ways[])(void) = {by_malloc,       by_calloc,       by_aligned_alloc,
                                     by_large_malloc, by_large_calloc, by_realloc};
enum { WAYS = sizeof ways / sizeof *ways, SMALL_WAYS = 3 };

/* Its first allocation is the one beside the fork. */
static void *allocate(void *way) {
    pthread_barrier_wait(&closed);
    if (waits_for_thread) {
        in_vain();
    } else {
        ways[(size_t)way]();
    }
    return NULL;
}

/* Free blocks of every size lie ready in the heap, none of them in a cache of this thread alone. */
static void *fill(void *unused) {
    static void *block[FREE], *large[8];
    static const size_t sizes[] = {SMALL, 5 * SMALL, ALIGNMENT};
    for (size_t s = 0; s < 3; s++) {
        for (int i = 0; i < FREE; i++) {
            block[i] = malloc(sizes[s]);
            EXPECT(block[i] != NULL, "no memory");
            memset(block[i], 1, sizes[s]);
        }
        for (int i = 0; i < FREE; i++) {
            free(i % 50 != 0 ? block[i] : NULL); /* the others keep the slabs */
        }
    }
    for (int i = 0; i < 8; i++) {
        large[i] = calloc(1, GROWN);
        EXPECT(large[i] != NULL, "no memory");
    }
    for (int i = 0; i < 8; i++) {
        free(large[i]);
    }
    return unused;
}

static void limit_addresses(void) {
    char line[64] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file != NULL && fgets(line, sizeof line, file) != NULL, "no /proc/self/statm");
    fclose(file);
    rlim_t used = (rlim_t)strtoul(line, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE);
    struct rlimit limit = {used, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
}

static void use_mappings_up(void) {
    enum { MOST = 200000 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < MOST; i++) {
        int protection = i % 2 != 0 ? PROT_READ : PROT_NONE;
        if (mmap(NULL, page, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
            return;
        }
    }
    expect_skip("this kernel allows more than %d mappings (vm.max_map_count)", MOST);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count >= 2, "which way?");
    waits_for_thread = strcmp(arguments[1], "awaited") == 0;
    size_t threads = waits_for_thread ? 1 : count > 2 ? SMALL_WAYS : WAYS;
    pthread_t thread[WAYS], filler;
    EXPECT(pthread_create(&filler, NULL, fill, NULL) == 0, "no thread");
    pthread_join(filler, NULL);
    to_be_resized = malloc(LARGE);
    EXPECT(to_be_resized != NULL, "no memory");
    pattern_fill(to_be_resized, 0, LARGE, 1);
    EXPECT(pthread_barrier_init(&closed, NULL, (unsigned)threads + 1) == 0 &&
               pthread_barrier_init(&served, NULL, 2) == 0,
           "no barrier");
    for (size_t i = 0; i < threads; i++) {
        EXPECT(pthread_create(&thread[i], NULL, allocate, (void *)i) == 0, "no thread");
    }
    (strcmp(arguments[1], "mappings") == 0 ? use_mappings_up : limit_addresses)();
    first_library_while_forking = while_forking;
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    int status = 0;
    EXPECT(child > 0 || strcmp(arguments[1], "mappings") == 0, "no fork");
    EXPECT(child < 0 || (waitpid(child, &status, 0) == child && status == 0), "wait status %#x", (unsigned)status);
    for (size_t i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}
