/* A library whose constructor, run before those of the program and of any preload, registers functions to be run
 * around fork, all of which use the heap. */
#include "fork_handlers_library.h"

#include <pthread.h>

#include "entry.h"
#include "expect.h"

int fork_handlers_calls;

static void *carried;

static void use_heap(void) {
    static const size_t sizes[] = {16, 1000, 40000, 400000, 3 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = malloc(sizes[i]);
        EXPECT(block != NULL, "the heap does not serve a fork handler");
        block[0] = 1;
        block[sizes[i] - 1] = 1;
        free(block);
    }
    fork_handlers_calls++;
}

static void before(void) {
    use_heap();
    carried = realloc(carried, 100 + (size_t)fork_handlers_calls);
    EXPECT(carried != NULL, "realloc fails in a fork handler");
}

static void after(void) {
    use_heap();
    free(carried);
    carried = NULL;
}

void fork_handlers_register(void) { EXPECT(pthread_atfork(before, after, after) == 0, "pthread_atfork failed"); }

__attribute__((constructor(101))) static void begin(void) { fork_handlers_register(); }
