/* With an interposer in front (interposer.c), libfreestone serves what the interposer passes on, and what it does not
 * interpose: the process starts although dlsym allocates while the first allocation of all is being made. */
#include <dlfcn.h>
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

static void *work(void *unused) {
    (void)unused;
    for (size_t size = 0; size < 5000; size += 7) {
        void *block = malloc(size);
        EXPECT(block != NULL, "malloc(%zu) failed", size);
        pattern_fill(block, 0, size, size);
        block = realloc(block, size + 100);
        EXPECT(block != NULL && pattern_mismatch(block, size, size) == SIZE_MAX, "realloc lost contents");
        free(block);
    }
    EXPECT(dlsym(RTLD_DEFAULT, "another_name_nothing_has") == NULL && dlerror() != NULL, "no message from dlerror");
    return NULL;
}

int main(void) {
    size_t (*calls)(void) = (size_t (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "interposer_calls");
    EXPECT(calls != NULL, "the interposer is not loaded");
    static const char *const passed[] = {"calloc", "realloc", "free"};
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        require_served(passed[i]);
    }
    size_t before = calls();
    work(NULL);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
    EXPECT(calls() >= before + 1400, "malloc did not pass through the interposer");
    return 0;
}
