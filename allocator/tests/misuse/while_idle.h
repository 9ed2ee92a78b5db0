/* A second free that lies in the cache of a thread that sleeps: it is the library's keeper that finds it. */
#ifndef FREESTONE_TESTS_WHILE_IDLE_H
#define FREESTONE_TESTS_WHILE_IDLE_H

#include "../idle/tasks.h"
#include "misuse.h"

/* Announces the line, with `more` behind it, misuses and sleeps. */
static inline int free_twice_and_sleep(const char *more) {
    enum { BLOCKS = 60000, MAGAZINES = 240 };
    static void *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = unseen(malloc(200));
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, 200);
    }
    void *twice = block[0];
    announce("double free: pointer %p, size class 224 bytes", twice);
    EXPECT(write(STDOUT_FILENO, more, strlen(more)) >= 0, "standard output takes nothing");
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
    tasks_sleep(12000);
    return unnoticed();
}

#endif
