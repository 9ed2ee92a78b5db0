/* For a static program, where no dynamic linker can be asked: the identity links, and the heap is not the break,
 * which glibc's malloc uses and libfreestone never does. static_symbols.cmake proves the rest from the symbol table. */
#include "serving.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"

static char *break_at_start;

__attribute__((constructor(101))) static void remember_break(void) { break_at_start = sbrk(0); }

void require_serving(void) {
    EXPECT(freestone_identity[0] != '\0', "the identity is empty");
    void *block = unseen(malloc(24));
    EXPECT(block != NULL, "malloc(24) failed");
    uintptr_t at = (uintptr_t)block;
    EXPECT(at < (uintptr_t)break_at_start || at >= (uintptr_t)sbrk(0), "malloc serves from the break: it is libc's");
    free(block);
}
