/* The heap serves a program from the first constructor to the last destructor: constructors of libraries and of the
 * program before main, atexit functions, destructors after them; blocks pass from each to the next. */
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "first_library.h"
#include "pattern.h"
#include "serving.h"

enum { SIZE = 3000 };

static void *from_constructor;
static void *from_main;
static void *from_atexit;

__attribute__((constructor)) static void before_main(void) {
    from_constructor = malloc(SIZE);
    EXPECT(from_constructor != NULL, "the heap does not serve before main");
    pattern_fill(from_constructor, 0, SIZE, 1);
}

static void check_and_free(void *block, uint64_t id) {
    EXPECT(block != NULL && pattern_mismatch(block, SIZE, id) == SIZE_MAX, "block %zu changed", (size_t)id);
    free(block);
}

static void at_exit(void) {
    check_and_free(from_main, 2);
    from_atexit = realloc(NULL, SIZE);
    EXPECT(from_atexit != NULL, "the heap does not serve atexit functions");
    pattern_fill(from_atexit, 0, SIZE, 3);
    /* Registering more while they run allocates inside libc. */
    for (size_t i = 0; i < 100; i++) {
        EXPECT(atexit(first_library_check) == 0, "atexit failed");
    }
}

static void *in_thread(void *unused) {
    (void)unused;
    void *block = malloc(SIZE);
    EXPECT(block != NULL, "malloc failed");
    pattern_fill(block, 0, SIZE, 4);
    return block;
}

__attribute__((destructor)) static void after_main(void) {
    check_and_free(from_atexit, 3);
    check_and_free(from_constructor, 1);
    void *block = calloc(1, SIZE);
    EXPECT(block != NULL && pattern_not_zero(block, SIZE) == SIZE_MAX, "calloc fails in a destructor");
    free(block);
}

int main(void) {
    require_serving();
    first_library_check();
    from_main = malloc(SIZE);
    EXPECT(from_main != NULL, "malloc failed");
    pattern_fill(from_main, 0, SIZE, 2);
    for (size_t i = 0; i < 40; i++) { /* more than libc's static room for 32: it allocates */
        EXPECT(atexit(first_library_check) == 0, "atexit failed");
    }
    EXPECT(atexit(at_exit) == 0, "atexit failed");
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, in_thread, NULL) == 0, "no thread");
    void *block;
    pthread_join(thread, &block);
    check_and_free(block, 4);
    return 0;
}
