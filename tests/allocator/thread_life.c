/* Lives of threads, one after another: each takes 450 blocks of 16 to 1,016 bytes, the same for all, frees them and ends. tests/plugins/thread_life.py counts
 * what one takes.
 *
 *   thread_life LIVES */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { BLOCKS = 450, LEAST = 16, MOST = 1016 };

static void *live(void *nothing) {
    static void *blocks[BLOCKS]; /* one thread lives at a time */
    uint64_t random = 12345;
    for (int i = 0; i < BLOCKS; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        blocks[i] = malloc(LEAST + random % (MOST - LEAST + 1));
        if (blocks[i] == NULL) {
            abort();
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    return nothing;
}

int main(int count, char **words) {
    long lives = count == 2 ? atol(words[1]) : 0;
    for (long i = 0; i < lives; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, live, NULL) != 0 || pthread_join(thread, NULL) != 0) {
            return 1;
        }
    }
    return lives > 0 ? 0 : 2;
}
