/* A program that forks for each file, as man -K does: a child takes and frees some blocks of many sizes, and ends. Prints the page faults that each
 * child and its fork cost: a child copies each page that it writes to. Before, the parent has freed most of a heap that was larger. */
#include "hazard.h"

#include <sys/resource.h>

enum { BLOCKS = 20000, CHILDREN = 40, TAKEN = 200, SIZES = 40, LIVE_OF = 8 };

static size_t size_of(size_t i) { return 16 + i % SIZES * (i % SIZES) * 3; } /* to 4579 bytes */

static void read_a_file(void) {
    TABLE(block, TAKEN);
    for (size_t i = 0; i < TAKEN; i++) {
        block[i] = malloc(size_of(i));
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, size_of(i));
        if (i % 2 == 1) {
            free(block[i - 1]);
        }
    }
}

static long faults(int whose) {
    struct rusage usage;
    getrusage(whose, &usage);
    return usage.ru_minflt;
}

int main(void) {
    require_serving();
    TABLE(block, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = touched(size_of(i));
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % (LIVE_OF * SIZES) >= SIZES) {
            free(block[i]);
        }
    }
    long before = faults(RUSAGE_SELF);
    for (int i = 0; i < CHILDREN; i++) {
        EXPECT(in_process(read_a_file) == 0, "a child did not end well");
    }
    printf("%.1f\n", (double)(faults(RUSAGE_SELF) - before + faults(RUSAGE_CHILDREN)) / CHILDREN);
    return 0;
}
