/* mismatches MADE FREED: what C++ makes in one way is freed in another, in a hardened process; the line that it earns.
 * mismatches unchecked: all of them, and wrong sizes, in a process whose options leave that check out. */
#include <cstring>
#include <new>

#include "../misuse/misuse.h"

static const std::align_val_t alignment{64};

static void *make(const char *how) {
    return !std::strcmp(how, "malloc")        ? malloc(40)
           : !std::strcmp(how, "new")         ? operator new(40)
           : !std::strcmp(how, "new[]")       ? operator new[](40)
           : !std::strcmp(how, "aligned_new") ? operator new(40, alignment)
                                              : operator new[](40, alignment);
}

static void unmake(const char *how, void *block) {
    if (!std::strcmp(how, "free")) {
        free(block);
    } else if (!std::strcmp(how, "delete")) {
        operator delete(block);
    } else if (!std::strcmp(how, "delete[]")) {
        operator delete[](block);
    } else if (!std::strcmp(how, "sized_delete")) {
        operator delete(block, 40);
    } else if (!std::strcmp(how, "aligned_delete")) {
        operator delete(block, alignment);
    } else if (!std::strcmp(how, "realloc")) {
        free(unseen(realloc(block, 400)));
    } else {
        operator delete[](block, alignment);
    }
}

static const char *spaced(const char *word, char *into) {
    std::strcpy(into, word);
    for (char *at = into; *at != '\0'; at++) {
        *at = *at == '_' ? ' ' : *at;
    }
    return into;
}

static int unchecked() {
    const char *made[] = {"malloc", "new", "new[]", "aligned_new", "aligned_new[]"};
    const char *freed[] = {"free", "delete", "delete[]", "sized_delete", "aligned_delete", "aligned_delete[]"};
    for (const char *how : made) {
        for (const char *end : freed) {
            unmake(end, unseen(make(how)));
        }
    }
    operator delete(unseen(operator new(28)), 16);
    return 0;
}

int main(int count, char **arguments) {
    if (count == 2) {
        return unchecked();
    }
    EXPECT(count == 3, "usage: mismatches MADE FREED");
    char made[32], freed[32];
    const char *end = std::strcmp(arguments[2], "sized_delete") == 0 ? "delete"
                      : std::strcmp(arguments[2], "realloc") == 0    ? "free"
                                                                     : spaced(arguments[2], freed);
    void *block = unseen(make(arguments[1]));
    announce("mismatch: pointer %p, made by %s, freed by %s (kinds=0 leaves this check out)", block,
             spaced(arguments[1], made), end);
    unmake(arguments[2], block);
    _exit(unnoticed());
}
