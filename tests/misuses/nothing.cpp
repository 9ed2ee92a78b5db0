// nothing read|write malloc|new: the byte of a block of no bytes.
#include "misuse.h"

int main(int count, char **words) {
    if (count != 3) {
        return EXIT_USAGE;
    }
    char *before = take(16);
    memset(before, 0x5A, 16);
    void *got =
        is(words[2], "new") ? ::operator new(unseen(static_cast<size_t>(0))) : malloc(unseen(static_cast<size_t>(0)));
    volatile char *block = static_cast<char *>(unseen(got));
    say_doing();
    if (is(words[1], "write")) {
        *block = 0x41;
    } else {
        (void)*block;
    }
    say("done");
    if (is(words[2], "new")) {
        ::operator delete(got);
    } else {
        free(got);
    }
    look_for_all(before, 16, 0x5A);
    live_on(16);
    look_for_all(before, 16, 0x5A);
    free(before);
    return farewell();
}
