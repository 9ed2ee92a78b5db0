// double_free at-once|delayed|interleaved|threads|reused malloc|new|array SIZE: a block is freed twice.
#include "misuse.h"

#include <pthread.h>

static const char *way;

static char *get(size_t size) {
    void *block = is(way, "new") ? ::operator new(size) : is(way, "array") ? ::operator new[](size) : take(size);
    return static_cast<char *>(unseen(block));
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

static void *give_elsewhere(void *block) {
    give(block);
    return nullptr;
}

/* In a thread whose stack has no page without rights below it: whatever lies in such a page is then the allocator's. */
static void give_in_thread(void *block) {
    pthread_attr_t without_guard;
    pthread_t thread;
    pthread_attr_init(&without_guard);
    pthread_attr_setguardsize(&without_guard, 0);
    if (pthread_create(&thread, &without_guard, give_elsewhere, block) != 0) {
        _exit(EXIT_UNFIT);
    }
    pthread_join(thread, nullptr);
}

int main(int count, char **words) {
    if (count != 4) {
        return EXIT_USAGE;
    }
    const char *when = words[1];
    way = words[2];
    size_t size = size_named(words[3]);
    char *block = get(size), *other = get(size), *later = nullptr;
    memset(block, 1, size);
    memset(other, 1, size);
    if (is(when, "threads")) {
        give_in_thread(block);
    } else {
        give(block);
    }
    if (is(when, "interleaved")) {
        give(other);
    } else if (is(when, "delayed")) {
        live_on(size);
    } else if (is(when, "reused")) {
        later = get(size); /* perhaps the very block: then its owner is robbed */
        memset(later, 2, size);
    }
    say_doing();
    give(block);
    say("done");
    live_on(size, later != nullptr ? Owned{later, size} : Owned{nullptr, 0});
    if (!is(when, "interleaved")) {
        look_for_all(other, size, 1);
        give(other);
    }
    if (later != nullptr) {
        look_for_all(later, size, 2);
        give(later);
    }
    part(size);
    return farewell();
}
