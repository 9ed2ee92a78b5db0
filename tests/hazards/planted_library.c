/* libc's own allocator with one fault, chosen by PLANTED, so that every hazard's program can be seen to fail. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);
void *__libc_memalign(size_t alignment, size_t size);

static char fault[32];

static bool is(const char *name) { return strcmp(fault, name) == 0; }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void choose(void) {
    const char *chosen = getenv("PLANTED");
    if (chosen != NULL) {
        strncpy(fault, chosen, sizeof fault - 1);
    }
}

static void before(void) {
    if (is("lock")) { /* no handler takes it before a fork */
        pthread_mutex_lock(&lock);
        for (volatile int turn = 0; turn < 200; turn++) {
        }
        pthread_mutex_unlock(&lock);
    }
}

void *malloc(size_t size) {
    before();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    before();
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    before();
    return __libc_realloc(block, size);
}

void free(void *block) {
    before();
    if (is("keeps")) {
        return;
    }
    __libc_free(block);
}
