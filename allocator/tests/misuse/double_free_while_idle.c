/* The second free lies in the cache of a thread that sleeps: it is the library's keeper that finds it, and stops the
 * program as any thread would. */
#include "../idle/tasks.h"
#include "misuse.h"

enum { BLOCKS = 60000, MAGAZINES = 240 };

static void *block[BLOCKS];

int main(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = unseen(malloc(200));
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, 200);
    }
    void *twice = block[0];
    announce("double free: pointer %p, size class 224 bytes", twice);
    free(twice);
    for (size_t i = MAGAZINES; i < BLOCKS; i++) {
        if (i % 100 != 0) {
            free(block[i]);
        }
    }
    flush();
    free(twice);
    for (size_t i = 1; i < MAGAZINES; i++) { /* one magazine full of which `twice` is one, and another */
        free(block[i]);
    }
    tasks_sleep(8000);
    return unnoticed();
}
