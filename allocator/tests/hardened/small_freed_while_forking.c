/* Blocks too small for a pointer, freed by another thread while a fork is under way, in a hardened process: they are whole to the child, which
 * looks at all blocks when it ends, and free to the parent. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "../entry.h"
#include "../expect.h"
#include "../lifecycle/first_library.h"
#include "../serving.h"

enum { SIZES = 8, EACH = 8, BLOCKS = (SIZES + 2) * EACH };

static void *block[BLOCKS];
static _Atomic int stage;

static void await_stage(int wanted) {
    while (atomic_load(&stage) != wanted) {
        usleep(1000);
    }
}

static void take_all(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = i / EACH;
        if (size < SIZES) {
            block[i] = unseen(malloc(size));
        } else { /* large ones, by their alignment */
            block[i] = unseen(aligned_alloc(1 << 17, size == SIZES ? 0 : 4));
            size = size == SIZES ? 0 : 4;
        }
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], (int)i, size);
    }
}

static void *give_all(void *unused) {
    take_all();
    atomic_store(&stage, 1);
    await_stage(2);
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    atomic_store(&stage, 3);
    await_stage(4);
    return unused;
}

/* The library's own handler, which closes the gate, has run. */
static void let_it_free(void) {
    atomic_store(&stage, 2);
    await_stage(3);
}

int main(void) {
    require_serving();
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, give_all, NULL) == 0, "no thread");
    await_stage(1);
    size_t before = freestone_check();
    first_library_while_forking = let_it_free;
    pid_t child = fork();
    if (child == 0) {
        exit(0);
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "wait status %#x", (unsigned)status);
    for (int i = 0; i < 100; i++) { /* inside, where what was parked is freed */
        free(unseen(malloc(300000)));
    }
    size_t after = freestone_check();
    EXPECT(after + BLOCKS == before, "%zu blocks of %zu are left, %d were freed", after, before, (int)BLOCKS);
    atomic_store(&stage, 4);
    pthread_join(thread, NULL);
    return 0;
}
