/* After start the heap needs no system calls but mmap, munmap, mremap, madvise, mprotect and futex, and a look at
 * its own filters: a program may lock itself into a sandbox that has only these (and those by which it speaks and
 * ends), before or while the library has a thread of its own to return memory. What it does in one that kills:
 * late_filter.c.
 *
 *   sandbox [late]   late: while it has */
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "../faults/gate.h"
#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { THREADS = 3, TABLE = 400, STEPS = 60000 };

static const long allowed[] = {
    SYS_mmap,       SYS_munmap,       SYS_mremap,    SYS_madvise,         SYS_mprotect, SYS_sched_getaffinity,
    SYS_futex,      SYS_openat,       SYS_read,      SYS_close,           SYS_write,    SYS_exit,
    SYS_exit_group, SYS_rt_sigreturn, SYS_nanosleep, SYS_clock_nanosleep,
};

static pthread_barrier_t together;

static int refuse(long number, const long arguments[6]) {
    (void)arguments;
    EXPECT(0, "system call %ld was made, which the sandbox does not know", number);
    return ENOSYS;
}

static void *shared[TABLE];

static void work(uint64_t random) {
    for (size_t i = 0; i < STEPS; i++) {
        size_t kind = pattern_below(&random, 1000);
        size_t bits = kind < 800   ? 4 + pattern_below(&random, 9)
                      : kind < 995 ? 12 + pattern_below(&random, 7)
                                   : 18 + pattern_below(&random, 11);
        size_t size = 1 + pattern_below(&random, (size_t)1 << bits);
        unsigned char *block = kind % 3 == 0 ? calloc(1, size) : malloc(size);
        EXPECT(block != NULL, "malloc(%zu) failed", size);
        block[0] = 1;
        if (kind % 7 == 0) {
            block = realloc(block, size * 2);
            EXPECT(block != NULL && block[0] == 1, "realloc to %zu failed", size * 2);
        }
        if (size > 1 << 18) { /* these would add up */
            free(block);
            continue;
        }
        free(__atomic_exchange_n(&shared[pattern_below(&random, TABLE)], block, __ATOMIC_ACQ_REL));
        if (i % 5000 == 0) {
            malloc_trim(0);
        }
    }
}

/* Frees so much that a thread is wished for which returns it. */
static void wish_for_keeper(void) {
    static void *block[16000];
    for (size_t i = 0; i < 16000; i++) {
        block[i] = malloc(1000);
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, 1000);
    }
    for (size_t i = 0; i < 16000; i++) {
        if (i % 100 != 0) {
            free(block[i]);
        }
    }
    free(malloc(8 << 20));
}

static int enter_late(void) {
    wish_for_keeper();
    EXPECT(tasks_await_keeper(true, 2000), "there is no keeper");
    gate_close(allowed, sizeof allowed / sizeof *allowed, true, refuse);
    tasks_sleep(4000); /* whatever it does now, it does in the sandbox */
    wish_for_keeper();
    work(3);
    tasks_sleep(1000);
    _exit(0);
}

static void *in_thread(void *argument) {
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    work((uintptr_t)argument);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together); /* for ever: a thread's end takes calls of libc's own */
    return NULL;
}

int main(int count, char **arguments) {
    require_serving();
    if (count == 2 && strcmp(arguments[1], "late") == 0) {
        return enter_late();
    }
    free(malloc(1));
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (uintptr_t t = 0; t < THREADS; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, in_thread, (void *)(t + 2)) == 0, "no thread");
    }
    pthread_barrier_wait(&together);
    gate_close(allowed, sizeof allowed / sizeof *allowed, true, refuse);
    pthread_barrier_wait(&together);
    work(1);
    wish_for_keeper(); /* none comes: it would take a call that the sandbox does not know */
    tasks_sleep(700);
    wish_for_keeper();
    pthread_barrier_wait(&together);
    _exit(0);
}
