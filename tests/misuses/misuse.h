/* What every program of misuses is made of. It is one bug, which its arguments place: a size, a distance, a way. It says on standard output
 *
 *     doing     before the misuse        done      right after it
 *     harmless  where the misuse has been given nothing to harm: what it read or met was not what it was after
 *
 * and lives on for a while, so that who looks later has something to look at. Who judges is tools/misuses. */
#ifndef FREESTONE_TESTS_MISUSES_H
#define FREESTONE_TESTS_MISUSES_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <unistd.h>

constexpr size_t SMALL = 40, MEDIUM = 5000, LARGE = 600000;

/* Exit statuses that are no verdict. */
enum { EXIT_USAGE = 64, EXIT_UNFIT = 65 };

/* By a system call of its own: what stdio keeps back is lost in an abort. */
inline void say(const char *word) {
    char line[32];
    int length = snprintf(line, sizeof line, "%s\n", word);
    if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) {
        _exit(EXIT_UNFIT);
    }
}

/* The compiler may not know that it is the same. */
template <typename Value> inline Value unseen(Value value) {
    __asm__ volatile("" : "+r"(value) : : "memory");
    return value;
}

inline bool is(const char *word, const char *other) { return strcmp(word, other) == 0; }

inline size_t size_named(const char *word) {
    return is(word, "small")    ? SMALL
           : is(word, "medium") ? MEDIUM
           : is(word, "large")  ? LARGE
                                : strtoul(word, nullptr, 10);
}

inline char *take(size_t size) {
    char *block = static_cast<char *>(unseen(malloc(size)));
    if (block == nullptr) {
        _exit(EXIT_UNFIT);
    }
    return block;
}

/* What goes on after the bug: blocks of its size and of others are taken and given back, so that quarantines are passed through and
 * caches flushed. */
inline void live_on(size_t size) {
    enum { ROUNDS = 40, BLOCKS = 200 };
    static char *blocks[BLOCKS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            size_t other = i % 2 == 0 ? size : 16 + static_cast<size_t>(i) * 24;
            blocks[i] = take(size > MEDIUM && i % 2 == 0 && i > 8 ? MEDIUM : other);
            blocks[i][0] = 1;
        }
        for (int i = 0; i < BLOCKS; i++) {
            free(blocks[(i * 7) % BLOCKS]);
        }
    }
}

#endif
