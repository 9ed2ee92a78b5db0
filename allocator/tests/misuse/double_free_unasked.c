/* A double free is found without being asked for, when enough other blocks have been freed. */
#include "misuse.h"

int main(void) {
    enum { MANY = 20000 };
    static void *others[MANY];
    for (size_t i = 0; i < MANY; i++) {
        others[i] = unseen(malloc(64));
    }
    void *block = unseen(malloc(64));
    announce("double free: pointer %p, size class 64 bytes", block);
    free(block);
    for (size_t i = 0; i < MANY / 2; i++) {
        free(others[i]);
    }
    free(unseen(block));
    for (size_t i = MANY / 2; i < MANY; i++) {
        free(others[i]);
    }
    /* Both frees may lie in full magazines that wait for reuse; the end of the program does not clear them up. */
    flush();
    return unnoticed();
}
