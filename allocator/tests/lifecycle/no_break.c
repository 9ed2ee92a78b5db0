/* The program break is the program's own: the heap never moves it, and a program that does is not disturbed. */
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { BLOCKS = 2000 };

int main(void) {
    require_serving();
    char *start = sbrk(0);
    static void *blocks[BLOCKS];
    for (size_t b = 0; b < BLOCKS; b++) {
        blocks[b] = malloc(b * 50 + 1);
        EXPECT(blocks[b] != NULL, "malloc failed");
        pattern_fill(blocks[b], 0, b * 50 + 1, b);
    }
    EXPECT(sbrk(0) == (void *)start, "the heap moved the program break by %td bytes", (char *)sbrk(0) - start);
    char *own = sbrk(1 << 20);
    EXPECT(own == start, "the break is not where it was");
    memset(own, 0xff, 1 << 20);
    for (size_t b = 0; b < BLOCKS; b++) {
        EXPECT(pattern_mismatch(blocks[b], b * 50 + 1, b) == SIZE_MAX, "a block lies in the program's own memory");
        free(blocks[b]);
    }
    for (size_t i = 0; i < 1 << 20; i++) {
        EXPECT(own[i] == (char)0xff, "the heap wrote into the program's own memory");
    }
    return 0;
}
