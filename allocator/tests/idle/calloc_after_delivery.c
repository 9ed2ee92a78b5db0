/* A thread that only frees blocks of a class has what it freed taken from it by the keeper; then it asks for one of
 * that class itself, by calloc, which prefers blocks that were in use to others, while there are none; and frees on.
 * No block is handed out twice, and none is freed that is not free. */
#include <pthread.h>

#include "field.h"
#include "serving.h"

enum {
    CLASSES = 5,
    BLOCKS = 63, /* of two slabs, most likely: at least one block was never taken */
    ROUNDS = 1,
    AGAIN = 2 * BLOCKS,
    LOOKS_MS = 1500,
};

static const size_t sizes[CLASSES] = {4096, 5120, 6144, 7168, 8192};
static unsigned char *given[CLASSES][BLOCKS], *again[CLASSES][AGAIN];
static pthread_barrier_t together;

/* Enough is freed, again and again, that the keeper goes on looking. */
static void let_keeper_look(void) {
    for (long end = tasks_clock() + LOOKS_MS; tasks_clock() < end; tasks_sleep(250)) {
        char *span = malloc(16 << 20);
        EXPECT(span != NULL, "malloc failed");
        for (size_t at = 0; at < 16 << 20; at += 4096) {
            span[at] = 1;
        }
        free(span);
    }
}

static void *give(void *unused) {
    unsigned char *zeroed[CLASSES];
    for (size_t r = 0; r < ROUNDS; r++) {
        pthread_barrier_wait(&together);
        for (size_t c = 0; c < CLASSES; c++) {
            free(given[c][4 * r]);
            free(given[c][4 * r + 1]);
        }
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&together); /* it has been delivered */
        for (size_t c = 0; c < CLASSES; c++) {
            zeroed[c] = calloc(1, sizes[c]);
            EXPECT(zeroed[c] != NULL && pattern_not_zero(zeroed[c], sizes[c]) == SIZE_MAX, "calloc(%zu)", sizes[c]);
            pattern_fill(zeroed[c], 0, sizes[c], 1000 + c);
            free(given[c][4 * r + 2]);
        }
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&together);
        for (size_t c = 0; c < CLASSES; c++) {
            EXPECT(pattern_mismatch(zeroed[c], sizes[c], 1000 + c) == SIZE_MAX, "a block of %zu bytes has changed",
                   sizes[c]);
            free(zeroed[c]);
            free(given[c][4 * r + 3]);
        }
    }
    return unused;
}

int main(void) {
    require_serving();
    pthread_t thread;
    pthread_barrier_init(&together, NULL, 2);
    for (size_t c = 0; c < CLASSES; c++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            given[c][i] = calloc(1, sizes[c]);
            EXPECT(given[c][i] != NULL, "calloc failed");
            pattern_fill(given[c][i], 0, sizes[c], c * 100 + i);
        }
    }
    EXPECT(pthread_create(&thread, NULL, give, NULL) == 0, "no thread");
    for (size_t r = 0; r < ROUNDS; r++) {
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&together);
        let_keeper_look();
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&together);
        let_keeper_look();
        pthread_barrier_wait(&together);
    }
    pthread_join(thread, NULL);
    for (size_t c = 0; c < CLASSES; c++) {
        for (size_t i = 0; i < AGAIN; i++) {
            again[c][i] = malloc(sizes[c]);
            EXPECT(again[c][i] != NULL, "malloc failed");
            pattern_fill(again[c][i], 0, sizes[c], 5000 + c * 1000 + i);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            EXPECT(i < 4 * ROUNDS || pattern_mismatch(given[c][i], sizes[c], c * 100 + i) == SIZE_MAX,
                   "block %zu of %zu bytes was handed out twice", i, sizes[c]);
        }
        for (size_t i = 0; i < AGAIN; i++) {
            EXPECT(pattern_mismatch(again[c][i], sizes[c], 5000 + c * 1000 + i) == SIZE_MAX,
                   "a block of %zu bytes was handed out twice", sizes[c]);
            free(again[c][i]);
        }
    }
    return 0;
}
