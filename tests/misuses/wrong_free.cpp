// wrong_free stack|global|text|interior|unaligned|near|mapped|unmapped SIZE: what is freed is no block.
#include "misuse.h"

#include <sys/mman.h>

static char global[MEDIUM];

static char *wrong(const char *what, char *block, size_t size) {
    static char on_stack_too;
    if (is(what, "global")) {
        return global + 64;
    }
    if (is(what, "text")) {
        return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(&size_named));
    }
    if (is(what, "interior")) {
        return block + (size / 2 & ~static_cast<size_t>(15));
    }
    if (is(what, "unaligned")) {
        return block + 1;
    }
    if (is(what, "near")) {
        return block - 16;
    }
    if (is(what, "mapped") || is(what, "unmapped")) {
        void *room = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) {
            _exit(EXIT_UNFIT);
        }
        if (is(what, "unmapped")) {
            munmap(room, 1 << 16);
        }
        return static_cast<char *>(room) + 4096;
    }
    return &on_stack_too;
}

int main(int count, char **words) {
    if (count != 3) {
        return EXIT_USAGE;
    }
    size_t size = size_named(words[2]);
    alignas(16) char stack[256];
    memset(unseen(&stack[0]), 1, sizeof stack);
    char *block = take(size);
    memset(block, 1, size);
    char *freed = is(words[1], "stack") ? &stack[64] : wrong(words[1], block, size);
    say("doing");
    free(unseen(freed));
    say("done");
    live_on(size);
    return 0;
}
