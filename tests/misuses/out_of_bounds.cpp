// out_of_bounds write|read over|under DISTANCE direct|call SIZE: a block is left by so many bytes, in a straight line or by one access so
// far away, and given back afterwards. A write is felt by the neighbours, whose bytes it changes, or later, by whoever is given what it spoilt; a
// read has done its harm where it met what a neighbour had.
#include "misuse.h"

enum { NEIGHBOURS = 16, SECRET = 0x5A };

static bool met;

static void look(const volatile char *at) { met |= *at == SECRET; }

/* `from` and `to` are the first and the last byte that is touched. */
static void touch(volatile char *from, volatile char *to, bool writes, bool by_call) {
    std::ptrdiff_t step = from <= to ? 1 : -1;
    if (by_call) {
        char *low = const_cast<char *>(from <= to ? from : to);
        auto length = static_cast<size_t>(from <= to ? to - from : from - to) + 1;
        if (writes) {
            memset(unseen(low), 0x41, unseen(length));
            return;
        }
        static char copy[2 << 20];
        memcpy(copy, unseen(low), unseen(length));
        met |= memchr(copy, SECRET, length) != nullptr;
        return;
    }
    for (volatile char *at = from;; at += step) {
        if (writes) {
            *at = 0x41;
        } else {
            look(at);
        }
        if (at == to) {
            return;
        }
    }
}

int main(int count, char **words) {
    if (count != 6) {
        return EXIT_USAGE;
    }
    bool writes = is(words[1], "write"), over = is(words[2], "over"), by_call = is(words[4], "call");
    auto distance = static_cast<std::ptrdiff_t>(strtoul(words[3], nullptr, 10));
    size_t size = size_named(words[5]);
    char *blocks[NEIGHBOURS];
    for (char *&block : blocks) { /* all of them are somebody's, but for the one in the middle */
        block = take(size);
        memset(block, SECRET, size);
    }
    char *block = blocks[NEIGHBOURS / 2];
    memset(block, 1, size);
    say_doing();
    if (over) {
        touch(unseen(block) + size, unseen(block) + size + distance - 1, writes, by_call);
    } else {
        touch(unseen(block) - 1, unseen(block) - distance, writes, by_call);
    }
    say("done");
    if (met) {
        harm();
    }
    free(block);
    for (char *other : blocks) {
        if (other != block) {
            look_for_all(other, size, SECRET);
        }
    }
    live_on(size);
    for (char *other : blocks) {
        if (other != block) {
            look_for_all(other, size, SECRET);
            free(other);
        }
    }
    part(size);
    return farewell();
}
