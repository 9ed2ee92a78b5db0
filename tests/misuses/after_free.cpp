// after_free write|read at-once|reused direct|call SIZE: a block is used after it was freed, at once or when somebody else may have it.
// A read has done its harm where it met what had been in the block; a write where it changed what somebody else holds, or is given later.
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
    say_doing();
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
    say("done");
    if (met) {
        harm();
    }
    for (int i = 0; i < held; i++) {
        look_for_all(others[i], size, 0);
        free(others[i]);
    }
    live_on(size);
    return farewell();
}
