/* Every block is written over its end by 16 bytes, as a program with a bug does: the neighbour's content is lost, or the write
 * faults at a guard. The allocator's own bookkeeping is neither beside the block nor in it: it serves on as before. */
#include "hazard.h"

#include <setjmp.h>

enum { BLOCKS = 20000, BEYOND = 16 };

static unsigned char *block[2 * BLOCKS];
static sigjmp_buf guard;

static void hit_guard(int signal) {
    (void)signal;
    siglongjmp(guard, 1);
}

static size_t size_of(size_t i) {
    static const size_t sizes[] = {64, 16, 1024, 4096, 20000};
    return sizes[i * 5 / BLOCKS % 5];
}

static void run(void) {
    alarm(20);
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(size_of(i));
        EXPECT(block[i] != NULL, "malloc failed");
    }
    signal(SIGSEGV, hit_guard);
    for (volatile size_t i = 0; i < BLOCKS; i++) {
        if (sigsetjmp(guard, 1) == 0) {
            memset(block[i] + malloc_usable_size(block[i]), 0xff, BEYOND);
        }
    }
    signal(SIGSEGV, SIG_DFL);
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    for (size_t i = 0; i < 2 * BLOCKS; i++) {
        size_t size = size_of(i % BLOCKS);
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "malloc failed afterwards");
        pattern_fill(block[i], 0, size, i);
    }
    for (size_t i = 0; i < 2 * BLOCKS; i++) {
        EXPECT(pattern_mismatch(block[i], size_of(i % BLOCKS), i) == SIZE_MAX, "a block was handed out twice");
        free(block[i]);
    }
}

int main(void) {
    require_serving();
    int status = in_process(run);
    EXPECT(!WIFSIGNALED(status), "%s afterwards", strsignal(WTERMSIG(status)));
    EXPECT(status == 0, "it ended with status %#x", (unsigned)status);
    printf("it serves on\n");
    return 0;
}
