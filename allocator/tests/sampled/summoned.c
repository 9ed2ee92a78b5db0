/* Threads that take what they have just freed, while they are summoned as often as may be (guard=101): each block is one thread's, and what is in
 * it stays. */
#include <pthread.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { THREADS = 3, ALIVE = 40, ROUNDS_MOST = 400000, GUARDED_ENOUGH = 60 };

static const size_t sizes[] = {16, 24, 100, 500, 1000, 1500, 5000, 16000};

struct held {
    uint64_t *block;
    size_t words;
    uint64_t mark;
};

static void check(const struct held *held) {
    for (size_t word = 0; word < held->words; word += held->words > 8 ? held->words / 8 : 1) {
        EXPECT(held->block[word] == held->mark + word, "word %zu of a block of %zu has changed", word, held->words);
    }
}

static uint64_t next(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

static size_t guarded(void) {
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    return stats.guarded;
}

static void *work(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument;
    struct held held[ALIVE] = {0};
    for (int round = 0; round < ROUNDS_MOST; round++) {
        struct held *one = &held[next(&state) % ALIVE];
        if (one->block != NULL) {
            check(one);
            free(one->block);
        }
        size_t size = sizes[next(&state) % (sizeof sizes / sizeof *sizes)];
        *one = (struct held){unseen(malloc(size)), size / 8, (uint64_t)(uintptr_t)argument << 48 | next(&state) << 8};
        EXPECT(one->block != NULL, "no memory");
        for (size_t word = 0; word < one->words; word++) {
            one->block[word] = one->mark + word;
        }
        if (round % 1000 == 0 && guarded() > GUARDED_ENOUGH * THREADS) {
            break;
        }
    }
    for (int i = 0; i < ALIVE; i++) {
        if (held[i].block != NULL) {
            check(&held[i]);
            free(held[i].block);
        }
    }
    return argument;
}

int main(void) {
    require_serving();
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    EXPECT(guarded() > 0, "no block was guarded");
    return 0;
}
