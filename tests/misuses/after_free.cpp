// after_free write|read at-once|reused direct|call SIZE: a block is used after it was freed, at once or when somebody else may have it.
// A read is harmless where what was in the block is gone; a write where it did not change what somebody else holds.
#include "misuse.h"

enum { SECRET = 0x5A, OTHERS = 64 };

int main(int count, char **words) {
    if (count != 5) {
        return EXIT_USAGE;
    }
    bool writes = is(words[1], "write"), reused = is(words[2], "reused"), by_call = is(words[3], "call");
    size_t size = size_named(words[4]);
    char *block = take(size);
    memset(block, SECRET, size);
    free(block);
    char *others[OTHERS];
    int held = 0;
    if (reused) {
        for (; held < (size > MEDIUM ? 2 : OTHERS); held++) {
            others[held] = take(size);
            memset(others[held], 0, size);
        }
    }
    say("doing");
    volatile char *at = unseen(block) + size / 2;
    bool met = false;
    if (writes && by_call) {
        memset(const_cast<char *>(at), 0x41, unseen(static_cast<size_t>(8)));
    } else if (writes) {
        *at = 0x41;
    } else if (by_call) {
        char copy[8];
        memcpy(copy, const_cast<char *>(at), unseen(sizeof copy));
        met = unseen(copy[0]) == SECRET;
    } else {
        met = *at == SECRET;
    }
    if (reused && writes) {
        for (int i = 0; i < held; i++) {
            met |= others[i][size / 2] == 0x41;
        }
        say(met ? "done" : "harmless");
    } else {
        say(writes || met ? "done" : "harmless");
    }
    for (int i = 0; i < held; i++) {
        free(others[i]);
    }
    live_on(size);
    return 0;
}
