// wrong_free stack|global|text|interior|unaligned|near|mapped|unmapped SIZE: what is freed is no block. It is felt when those bytes, or a part of
// the block they lie in, are given to somebody.
#include "misuse.h"

#include <sys/mman.h>

enum { ROOM = 1 << 16 };

static char global[MEDIUM];

/* What is freed, and the bytes around it that are somebody's. */
struct Wrong {
    char *freed;
    Owned owned;
};

static Wrong wrong(const char *what, char *block, size_t size) {
    Owned own = {block, size};
    if (is(what, "global")) {
        return {global + 64, {global, sizeof global}};
    }
    if (is(what, "text")) {
        char *text = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(&wrong));
        return {text, {text, 64}};
    }
    if (is(what, "interior")) {
        return {block + (size / 2 & ~static_cast<size_t>(15)), own};
    }
    if (is(what, "unaligned")) {
        return {block + 1, own};
    }
    if (is(what, "near")) {
        return {block - 16, own};
    }
    char *room = static_cast<char *>(mmap(nullptr, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (room == MAP_FAILED) {
        _exit(EXIT_UNFIT);
    }
    if (is(what, "unmapped")) { /* and nobody's: an allocator may map it anew */
        munmap(room, ROOM);
        return {room + 4096, {nullptr, 0}};
    }
    return {room + 4096, {room, ROOM}};
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
    Wrong bug = is(words[1], "stack") ? Wrong{&stack[64], {stack, sizeof stack}} : wrong(words[1], block, size);
    say_doing();
    free(unseen(bug.freed));
    say("done");
    live_on(size, bug.owned);
    look_for_all(block, size, 1);
    free(block);
    part(size, bug.freed >= block && bug.freed < block + size ? Owned{nullptr, 0} : bug.owned);
    return farewell();
}
