/* musl_contention: leptosfmt#191. Threads that ask for small blocks at once, under a C library that has one lock for all of them:
 * built for musl.
 *
 *   musl_contention     runs for about a second; exit status 0, nothing printed */
#include "patient.h"

#include <stdlib.h>
#include <string.h>

static void *formats(void *unused) {
    enum { NODES = 200 };
    void *nodes[NODES];
    for (int file = 0; file < 4000; file++) {
        for (int i = 0; i < NODES; i++)
            memset(nodes[i] = asked((size_t)(24 + 8 * (i % 20))), 1, 24);
        for (int i = 0; i < NODES; i++)
            free(nodes[i]);
    }
    return unused;
}

int main(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        start(&threads[i], formats, NULL);
    for (int i = 0; i < THREADS; i++)
        finish(threads[i]);
    return 0;
}
