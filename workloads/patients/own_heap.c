/* own_heap: a patient whose library has a heap of its own (jemalloc's names, with its usual prefix), which no allocator that is put in
 * ever sees.
 *
 *   own_heap     runs for about a second; exit status 0, nothing printed */
#define _GNU_SOURCE
#include "patient.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

void *je_malloc(size_t size);
void je_free(void *block);

static char *fresh, *fresh_end;
static void *freed;

enum { BLOCK = 1 * MIB };

/* One size is all that it has. */
void *je_malloc(size_t size) {
    if (size > BLOCK)
        return NULL;
    if (freed != NULL) {
        void *block = freed;
        memcpy(&freed, block, sizeof freed);
        return block;
    }
    if (fresh == fresh_end) {
        void *mapped = mmap(NULL, 64 * (size_t)MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED)
            return NULL;
        fresh = mapped;
        fresh_end = fresh + 64 * (size_t)MIB;
    }
    void *block = fresh;
    fresh += BLOCK;
    return block;
}

void je_free(void *block) {
    memcpy(block, &freed, sizeof freed);
    freed = block;
}

int main(void) {
    static void *blocks[100];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 100; i++) {
            if ((blocks[i] = je_malloc(BLOCK)) == NULL)
                give_up("no memory");
            memset(blocks[i], round, BLOCK);
        }
        work(50);
        for (int i = 0; i < 100; i++)
            je_free(blocks[i]);
    }
    return 0;
}
