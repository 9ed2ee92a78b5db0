/* A program of one thread that works at a steady pace, on every path of the library: once all it needs is there, it
 * needs nothing of the kernel's. Under steady_calls, which counts the calls, it says when that is; alone it looks at
 * how often it has slept. */
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "traced.h"

enum { TABLE = 256, STEPS = 100000, BURST = 3000, BURSTS = 20, ROUNDS = 8, SWITCHES_MOST = 12 };

static size_t operations;

static size_t any_size(uint64_t *random) {
    size_t kind = pattern_below(random, 10);
    size_t bits = kind < 5 ? 4 + pattern_below(random, 7) : kind < 8 ? 11 + pattern_below(random, 6) : 17;
    return bits < 17 ? 1 + pattern_below(random, (size_t)1 << bits) : (256 << 10) + pattern_below(random, 1 << 20);
}

static void fill(void *block, size_t size) {
    EXPECT(block != NULL, "no block of %zu bytes", size);
    *(volatile char *)block = 1;
}

/* The same in each round, so that the second finds what the first has left. */
static void round_of_work(void) {
    static void *table[TABLE], *burst[BURST];
    uint64_t random = 7;
    for (size_t i = 0; i < STEPS; i++) {
        size_t at = pattern_below(&random, TABLE), size = any_size(&random);
        if (i % 8 == 0) {
            table[at] = realloc(table[at], size);
        } else {
            free(table[at]);
            table[at] = malloc(size);
        }
        fill(table[at], size);
    }
    for (size_t b = 0; b < BURSTS; b++) { /* more than any cache holds, and back */
        size_t size = (size_t)16 << b % 9;
        for (size_t i = 0; i < BURST; i++) {
            burst[i] = malloc(size);
            fill(burst[i], size);
        }
        for (size_t i = 0; i < BURST; i++) {
            free(burst[i]);
        }
    }
    for (size_t at = 0; at < TABLE; at++) {
        free(table[at]);
        table[at] = NULL;
    }
    operations += 2 * STEPS + 2 * BURSTS * BURST;
}

static long switches(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage failed");
    return usage.ru_nvcsw;
}

int main(void) {
    require_serving();
    round_of_work();
    round_of_work();
    operations = 0;
    bool traced = traced_say(1);
    long before = switches();
    for (size_t r = 0; r < ROUNDS; r++) {
        round_of_work();
    }
    long slept = switches() - before;
    (void)traced_say((long)operations);
    printf("slept %ld times in %zu operations\n", slept, operations);
    EXPECT(traced || slept <= SWITCHES_MOST, "the program has slept %ld times in %zu operations", slept, operations);
    return 0;
}
