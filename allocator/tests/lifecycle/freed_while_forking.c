/* What another thread frees while a fork is under way goes back to the kernel, though nobody calls the library any more: by itself, or when
 * the program asks; and, where no keeper is, when the program goes on with large blocks alone.
 *
 *   freed_while_forking idle|trim|large */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "first_library.h"
#include "resident.h"
#include "serving.h"

enum { BLOCKS = 64, BYTES = 4 << 20, LEFT_KIB = 32 * 1024, PATIENCE_MS = 20000, CALLS = 1000 };

static void *block[BLOCKS];
static _Atomic int stage;

static void await_stage(int wanted) {
    while (atomic_load(&stage) != wanted) {
        usleep(1000);
    }
}

/* It never had a block of its own: the library does not know it. */
static void *give_all(void *unused) {
    await_stage(1);
    for (int i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    atomic_store(&stage, 2);
    return unused;
}

/* The library's own handler, which closes the gate, has run. */
static void let_it_free(void) {
    atomic_store(&stage, 1);
    await_stage(2);
}

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: freed_while_forking idle|trim|large");
    require_serving();
    size_t before = resident_kib();
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BYTES);
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], 1, BYTES);
    }
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, give_all, NULL) == 0, "no thread");
    first_library_while_forking = let_it_free;
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "wait status %#x", (unsigned)status);
    EXPECT(atomic_load(&stage) == 2, "nothing was freed during the fork");
    bool asked = strcmp(arguments[1], "trim") == 0;
    if (asked) {
        (void)malloc_trim(0);
    }
    for (int call = 0; strcmp(arguments[1], "large") == 0 && call < CALLS; call++) {
        asked = true;
        free(unseen(malloc(1 << 20)));
    }
    size_t left = resident_kib();
    for (int waited = 0; !asked && left > before + LEFT_KIB && waited < PATIENCE_MS; waited += 100) {
        usleep(100000);
        left = resident_kib();
    }
    EXPECT(left <= before + LEFT_KIB, "%zu KiB are still there, %zu before", left, before);
    return 0;
}
