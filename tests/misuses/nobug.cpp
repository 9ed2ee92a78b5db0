// nobug SIZE: what all the others do, but for the bug. Whoever is stopped here, or harmed, says nothing by it.
#include "misuse.h"

int main(int count, char **words) {
    if (count != 2) {
        return EXIT_USAGE;
    }
    size_t size = size_named(words[1]);
    char *block = take(size);
    memset(block, 1, size);
    say_doing();
    say("done");
    live_on(size, {block, size});
    look_for_all(block, size, 1);
    free(block);
    part(size);
    return farewell();
}
