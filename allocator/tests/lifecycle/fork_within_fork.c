/* A handler that runs before each fork forks itself, once: its child goes on with the outer fork, as in libraries that
 * start a helper there. Parent, child and that child all go on as ever; their memory goes back when they free it. */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum { BLOCKS = 400, BLOCK = 270000 };

static int depth;

static void await(pid_t process) {
    int status = 0;
    EXPECT(waitpid(process, &status, 0) == process && status == 0, "a child ended with %#x", (unsigned)status);
}

static void before(void) {
    if (depth++ == 0) {
        pid_t child = fork();
        EXPECT(child >= 0, "fork failed in a handler");
        if (child != 0) {
            await(child);
        }
    }
}

/* Before the library's own, which therefore runs first: it registers at the first allocation, or as a constructor. */
static void early(void) { (void)pthread_atfork(before, NULL, NULL); }
__attribute__((section(".preinit_array"), used)) static void (*const first_of_all)(void) = early;

static void use_heap(void) {
    static unsigned char *block[BLOCKS];
    size_t before_kib = resident_kib();
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            block[i] = unseen(malloc(BLOCK));
            EXPECT(block[i] != NULL, "malloc failed");
            memset(block[i], round + 1, BLOCK);
        }
        /* They are of the heap, not of what serves while a fork is under way. */
        EXPECT(mallinfo2().uordblks + mallinfo2().hblkhd >= (size_t)BLOCKS * BLOCK, "only %zu bytes are in use",
               mallinfo2().uordblks + mallinfo2().hblkhd);
        for (size_t i = 0; i < BLOCKS; i++) {
            EXPECT(block[i][BLOCK - 1] == round + 1, "a block has changed");
            free(block[i]);
        }
    }
    (void)freestone_purge();
    size_t left = resident_kib();
    EXPECT(left < before_kib + 8192, "%zu KiB are left, %zu were there before", left, before_kib);
}

int main(void) {
    require_serving();
    pid_t child = fork();
    EXPECT(child >= 0, "fork failed");
    if (child == 0) {
        use_heap();
        _exit(0);
    }
    await(child);
    use_heap();
    return 0;
}
