/* What tells a child that was copied whole from one that lives on the shelter: what it frees is used again, though a block in a thousand stays. */
#ifndef FREESTONE_TESTS_WHOLE_CHILD_H
#define FREESTONE_TESTS_WHOLE_CHILD_H

#include "entry.h"
#include "expect.h"
#include "resident.h"

/* The child's work; it ends with 0. */
__attribute__((noreturn)) static inline void whole_child(void) {
    enum { BLOCKS = 200000, SIZE = 1040, KEPT_EACH = 1000, MORE_KIB_MOST = 32 << 10 };
    size_t before = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % KEPT_EACH == 0) {
            EXPECT(unseen(malloc(40)) != NULL, "no memory in the child");
        }
        char *block = unseen(malloc(SIZE));
        EXPECT(block != NULL, "no memory in the child");
        memset(block, 1, SIZE);
        free(block);
    }
    size_t after = resident_kib();
    EXPECT(after < before + MORE_KIB_MOST, "blocks that are freed at once cost the child %zu MiB",
           (after - before) >> 10);
    _exit(0);
}

#endif
