/* A library whose constructor runs before that of any other, and whose destructor runs after the program's: uses the
 * heap in both, and keeps a block from the one to the other. */
#include "first_library.h"

#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"

enum { SIZE = 10000, LARGE = 1 << 20 };

static void *early;
static void *early_large;
static void *emptied;

void (*first_library_while_forking)(void);

static void before_fork(void) {
    if (first_library_while_forking != NULL) {
        first_library_while_forking();
    }
}

__attribute__((constructor(101))) static void begin(void) {
    (void)pthread_atfork(before_fork, NULL, NULL); /* first: an allocator may register its own when it is asked */
    early = malloc(SIZE);
    early_large = calloc(1, LARGE);
    emptied = malloc(24);
    EXPECT(early != NULL && early_large != NULL && emptied != NULL, "the heap does not serve a constructor");
    EXPECT(pattern_not_zero(early_large, LARGE) == SIZE_MAX, "calloc in a constructor is not zero");
    pattern_fill(early, 0, SIZE, 1);
    pattern_fill(early_large, 0, LARGE, 2);
}

__attribute__((destructor(101))) static void end(void) {
    first_library_check();
    free(early);
    free(early_large);
    void *late = malloc(SIZE);
    EXPECT(late != NULL, "the heap does not serve a destructor");
    free(late);
}

void first_library_check(void) {
    EXPECT(early != NULL, "the library's constructor did not run");
    EXPECT(pattern_mismatch(early, SIZE, 1) == SIZE_MAX, "a block from a constructor changed");
    EXPECT(pattern_mismatch(early_large, LARGE, 2) == SIZE_MAX, "a large block from a constructor changed");
    if (emptied != NULL) {
        free(emptied);
        emptied = NULL;
    }
}
