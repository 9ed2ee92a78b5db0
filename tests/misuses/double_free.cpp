// double_free at-once|delayed|interleaved|threads|reused malloc|new|array SIZE: a block is freed twice.
#include "misuse.h"

#include <thread>

static const char *way;

static void *get(size_t size) {
    void *block = is(way, "new") ? ::operator new(size) : is(way, "array") ? ::operator new[](size) : take(size);
    return unseen(block);
}

static void give(void *block) {
    block = unseen(block);
    if (is(way, "new")) {
        ::operator delete(block);
    } else if (is(way, "array")) {
        ::operator delete[](block);
    } else {
        free(block);
    }
}

int main(int count, char **words) {
    if (count != 4) {
        return EXIT_USAGE;
    }
    const char *when = words[1];
    way = words[2];
    size_t size = size_named(words[3]);
    void *block = get(size), *other = get(size);
    memset(block, 1, size);
    if (is(when, "threads")) {
        std::thread([=] { give(block); }).join();
    } else {
        give(block);
    }
    void *later = nullptr;
    if (is(when, "interleaved")) {
        give(other);
    } else if (is(when, "delayed")) {
        live_on(size);
    } else if (is(when, "reused")) {
        later = get(size); /* perhaps the very block: then its owner is robbed */
        if (later != block) {
            say("doing");
            give(block);
            say("done");
            live_on(size);
            return 0;
        }
    }
    say("doing");
    give(block);
    say("done");
    if (later != nullptr) {
        give(later);
    }
    live_on(size);
    return 0;
}
