/* Frames that a program registers with the unwinder, as compilers at run time do, so that the unwinder takes a lock of its own and may allocate under
 * it: malloc never waits for that lock, neither in the thread that has it nor in the child of a fork beside one that had it. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { FRAMES = 300, FORKS = 60, CODE_BYTES = 64, PATIENCE_S = 20 };

extern void __register_frame(void *begin);

static unsigned char code[FRAMES][CODE_BYTES];
static _Atomic bool over; /* relaxed: the thread ends sooner or later */

/* One common entry, then one of a function that nobody ever calls. Source of the layout: the DWARF standard, version 5, 6.4. */
static void register_one(unsigned char *function) {
    static const unsigned char common[] = {0x14, 0,    0,  0, 0, 0,  0, 0, 1,    'z', 'R', 0,
                                           1,    0x78, 16, 1, 0, 12, 7, 8, 0x90, 1,   0,   0};
    unsigned char *table = unseen(calloc(1, 256)), *entry = table + sizeof common;
    EXPECT(table != NULL, "no table");
    memcpy(table, common, sizeof common);
    uint32_t length = 28, back = (uint32_t)(entry + 4 - table);
    uint64_t start = (uint64_t)(uintptr_t)function, bytes = CODE_BYTES;
    memcpy(entry, &length, sizeof length);
    memcpy(entry + 4, &back, sizeof back);
    memcpy(entry + 8, &start, sizeof start);
    memcpy(entry + 16, &bytes, sizeof bytes);
    __register_frame(table); /* for as long as the process lives: the table stays */
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *argument) {
    (void)context;
    (void)argument;
    return _URC_NO_REASON;
}

static void allocate_some(void) {
    for (size_t i = 0; i < 100; i++) {
        free(unseen(malloc(300 + i)));
    }
}

static void *unwind_on(void *argument) {
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        (void)_Unwind_Backtrace(visit, NULL);
    }
    return argument;
}

int main(void) {
    require_serving();
    (void)alarm(3 * PATIENCE_S); /* a hang is a failure */
    for (size_t i = 0; i < FRAMES; i++) {
        register_one(code[i]);
        (void)_Unwind_Backtrace(visit, NULL); /* looks for what is new, and allocates for it under its lock */
        allocate_some();
    }
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, unwind_on, NULL) == 0, "no thread");
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)alarm(PATIENCE_S);
            allocate_some();
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "child %d ended with status %d", i, status);
        allocate_some();
    }
    atomic_store_explicit(&over, true, memory_order_relaxed);
    (void)pthread_join(thread, NULL);
    return 0;
}
