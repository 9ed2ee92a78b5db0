/* Its constructor waits for a thread that frees a block twice. */
#include <pthread.h>

#include "../entry.h"
#include "../expect.h"

int report_plugin_frees;

static void *free_twice(void *argument) {
    void *block = unseen(malloc(100));
    for (int time = 0; time < 2; time++) {
        free(unseen(block));
        report_plugin_frees++;
    }
    return argument;
}

__attribute__((constructor)) static void wait_for_it(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, free_twice, NULL) == 0, "no thread");
    EXPECT(pthread_join(thread, NULL) == 0, "pthread_join failed");
}
