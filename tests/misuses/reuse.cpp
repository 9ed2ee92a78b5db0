// reuse contents|address SIZE: a block that was freed is handed out again: with what was in it, or at once at the same place, where a stale pointer
// meets it. No bug, but what makes bugs worse.
#include "misuse.h"

enum { SECRET = 0x5A, TRIES = 64 };

int main(int count, char **words) {
    if (count != 3) {
        return EXIT_USAGE;
    }
    size_t size = size_named(words[2]);
    char *block = take(size);
    memset(block, SECRET, size);
    free(block);
    say_doing();
    bool met = false;
    if (is(words[1], "address")) {
        char *next = take(size);
        met = next == unseen(block);
        free(next);
    } else {
        char *held[TRIES];
        int tries = size > MEDIUM ? 4 : TRIES;
        for (int i = 0; i < tries; i++) {
            held[i] = take(size);
            for (size_t at = 0; at < size; at++) {
                met |= static_cast<volatile char *>(held[i])[at] == SECRET;
            }
        }
        for (int i = 0; i < tries; i++) {
            free(held[i]);
        }
    }
    say("done");
    if (met) {
        harm();
    }
    live_on(size);
    return farewell();
}
