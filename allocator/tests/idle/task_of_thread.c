/* A thread has a task take its first block: a raw clone with the thread's own thread-local data, which ends. The thread's cache is still the thread's when
 * the keeper looks for caches of threads that are gone. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "tasks.h"

enum { BLOCKS = 300, ROUNDS = 4, STACK = 1 << 18 };

static void *first;
static volatile int task_id = 1;

static int take_first(void *unused) {
    (void)unused;
    first = malloc(100);
    return 0;
}

static void run_task(void) {
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(stack != MAP_FAILED, "no stack");
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    EXPECT(clone(take_first, stack + STACK, flags, NULL, NULL, NULL, (void *)(uintptr_t)&task_id) > 0, "no task");
    while (task_id != 0) {
        (void)syscall(SYS_futex, &task_id, FUTEX_WAIT, 1, NULL, NULL, 0);
    }
    EXPECT(first != NULL, "no block");
}

static void work(unsigned round, unsigned char *block[BLOCKS]) {
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = 16 + i % 50 * 10;
        EXPECT(block[i] == NULL || pattern_mismatch(block[i], size, i + round - 1) == SIZE_MAX, "a block has changed");
        free(block[i]);
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "no block");
        pattern_fill(block[i], 0, size, i + round);
    }
}

static void *live(void *unused) {
    static unsigned char *block[BLOCKS];
    run_task();
    for (unsigned round = 1; round <= ROUNDS; round++) {
        work(round, block);
        tasks_sleep(1200); /* the keeper looks meanwhile */
    }
    return unused;
}

/* So much that the keeper is wished for, and has work. */
static void free_much(void) {
    static void *block[20000];
    for (size_t i = 0; i < 20000; i++) {
        block[i] = malloc(1000);
        EXPECT(block[i] != NULL, "no block");
        memset(block[i], 1, 1000);
    }
    for (size_t i = 0; i < 20000; i++) {
        free(block[i]);
    }
}

static void *beside(void *stop) {
    unsigned char *block[BLOCKS] = {NULL};
    for (unsigned round = 1; !*(volatile bool *)stop; round++) {
        work(round, block);
        free_much();
        tasks_sleep(100);
    }
    return NULL;
}

int main(void) {
    require_serving();
    static bool stop;
    pthread_t thread[2];
    free_much();
    EXPECT(pthread_create(&thread[0], NULL, beside, &stop) == 0, "no thread");
    tasks_sleep(200);
    EXPECT(pthread_create(&thread[1], NULL, live, NULL) == 0, "no thread");
    EXPECT(pthread_join(thread[1], NULL) == 0, "no end");
    *(volatile bool *)&stop = true;
    EXPECT(pthread_join(thread[0], NULL) == 0, "no end");
    return 0;
}
