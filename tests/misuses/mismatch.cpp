// mismatch larger|smaller|array-larger|free-new|delete-malloc|delete-array|array-delete|aligned-plain|plain-aligned SIZE: a block goes back by
// another way than it came.
#include "misuse.h"

int main(int count, char **words) {
    if (count != 3) {
        return EXIT_USAGE;
    }
    const char *how = words[1];
    size_t size = size_named(words[2]);
    auto aligned = std::align_val_t(64);
    enum { NEIGHBOURS = 16 };
    char *neighbours[NEIGHBOURS];
    for (char *&neighbour : neighbours) {
        neighbour = take(size);
        memset(neighbour, 2, size);
    }
    void *block;
    if (is(how, "delete-malloc")) {
        block = take(size);
    } else if (is(how, "delete-array") || is(how, "array-larger")) {
        block = ::operator new[](size);
    } else if (is(how, "plain-aligned")) {
        block = ::operator new(size, aligned);
    } else {
        block = ::operator new(size);
    }
    block = unseen(block);
    memset(block, 1, size);
    say_doing();
    if (is(how, "larger")) {
        ::operator delete(block, unseen(size * 2));
    } else if (is(how, "smaller")) {
        ::operator delete(block, unseen(size / 2));
    } else if (is(how, "array-larger")) {
        ::operator delete[](block, unseen(size * 2));
    } else if (is(how, "free-new")) {
        free(block);
    } else if (is(how, "array-delete")) {
        ::operator delete[](block);
    } else if (is(how, "aligned-plain")) {
        ::operator delete(block, aligned);
    } else {
        ::operator delete(block);
    }
    say("done");
    /* Where a size was believed, the block is given to somebody who wants that many bytes. */
    live_on(is(how, "smaller") ? size / 2 : is(how, "larger") || is(how, "array-larger") ? size * 2 : size);
    live_on(size);
    for (char *neighbour : neighbours) {
        look_for_all(neighbour, size, 2);
        free(neighbour);
    }
    part(size);
    return farewell();
}
