/* All of a large heap is freed: what stays in memory is next to nothing, bookkeeping included.
 *
 *   all_freed idle|trim */
#include <malloc.h>

#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { MIB = 1 << 20, TAKEN_MIB = 600, SIZE = 1000, LEFT_KIB_MOST = 1536 };

/* Each block holds the address of the one before, so that no list lies in the heap. */
static void take_and_free(void) {
    void **last = NULL;
    for (size_t i = 0; i < (size_t)TAKEN_MIB * MIB / SIZE; i++) {
        void **block = malloc(SIZE);
        EXPECT(block != NULL, "no memory");
        memset(block, 1, SIZE);
        *block = last;
        last = block;
    }
    while (last != NULL) {
        void **before = *last;
        free(last);
        last = before;
    }
}

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: all_freed idle|trim");
    require_serving();
    size_t before_kib = resident_kib(), most_kib = LEFT_KIB_MOST + 2 * resident_piece_bytes() / 1024;
    take_and_free();
    if (strcmp(arguments[1], "trim") == 0) {
        malloc_trim(0);
        size_t left_kib = resident_more_kib(resident_kib(), before_kib);
        EXPECT(left_kib <= most_kib, "%zu KiB stay", left_kib);
    } else {
        size_t left_kib = resident_more_kib(tasks_await_resident(before_kib + most_kib), before_kib);
        EXPECT(left_kib <= most_kib, "%zu KiB stay", left_kib);
    }
    take_and_free(); /* where it was given up, it is used again */
    return 0;
}
