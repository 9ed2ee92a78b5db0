/* What every program of misuses is made of. It is one bug, which its arguments place: a size, a distance, a way. It says on standard output
 *
 *     doing               before the misuse, on standard error too: what stands there behind it was caused by the misuse
 *     done                right after it
 *     harmed              somebody has felt it: see harm()
 *     unharmed            at the end, where nobody has
 *     fault RIGHTS INODE  a fault, and what lies at its address: "rw-p", "---p" ...; "hole" where nothing does
 *
 * and lives on for a while, so that who looks later has something to look at. tools/conformance judges it. */
#ifndef FREESTONE_TESTS_MISUSES_H
#define FREESTONE_TESTS_MISUSES_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

constexpr size_t SMALL = 40, MEDIUM = 5000, LARGE = 600000;

/* Exit statuses that are no verdict. */
enum { EXIT_USAGE = 64, EXIT_UNFIT = 65 };

/* By a system call of its own: what stdio keeps back is lost in an abort. */
inline void say_to(int where, const char *word) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s\n", word);
    if (write(where, line, static_cast<size_t>(length)) != length) {
        _exit(EXIT_UNFIT);
    }
}

inline void say(const char *word) { say_to(STDOUT_FILENO, word); }

inline void say_doing() {
    say("doing");
    say_to(STDERR_FILENO, "doing");
}

/* -- what lies at the address of a fault ----------------------------------------------------------------------- */

/* Of one line of /proc/self/maps after the other, without malloc and with little of the stack: the heap may be in ruins. */
inline void say_place(uintptr_t address) {
    static char text[1 << 16], line[128];
    size_t length = 0;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t got; (got = read(maps, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < got; i++) {
            if (text[i] != '\n') {
                line[length] = text[i];
                length += length < sizeof line - 1 ? 1 : 0; /* of a long path the end is not needed */
                continue;
            }
            line[length] = '\0';
            length = 0;
            unsigned long from, to, inode;
            char rights[8];
            if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &from, &to, rights, &inode) == 4 && from <= address &&
                address < to) {
                char found[48];
                snprintf(found, sizeof found, "fault %s %lu", rights, inode);
                say(found);
                return;
            }
        }
    }
    say("fault hole 0");
}

inline struct sigaction &handler_before(int number) {
    static struct sigaction segv, bus;
    return number == SIGSEGV ? segv : bus;
}

/* Says where, and hands on to who was there before: an allocator's own handler, or the end. */
inline void on_fault(int number, siginfo_t *info, void *context) {
    static bool told;
    struct sigaction &before = handler_before(number);
    if (!told) {
        told = true;
        say_place(info->si_code > 0 && info->si_code != SI_KERNEL ? reinterpret_cast<uintptr_t>(info->si_addr) : 0);
        if ((before.sa_flags & SA_SIGINFO) != 0) {
            before.sa_sigaction(number, info, context);
            return;
        }
    }
    signal(number, SIG_DFL); /* the access is tried again, and nobody catches it */
}

inline bool listens = [] {
    struct sigaction own = {};
    own.sa_sigaction = on_fault;
    own.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &own, &handler_before(SIGSEGV));
    sigaction(SIGBUS, &own, &handler_before(SIGBUS));
    /* A ring in a list of free blocks is walked for ever. In time of the processor, since the machine may be busy. */
    rlimit limit = {3, 6};
    setrlimit(RLIMIT_CPU, &limit);
    return true;
}();

/* -- blocks ---------------------------------------------------------------------------------------------------- */

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

/* The bug has been felt: a block changed under its owner, two owners were given the same bytes, memory that should be zero was not,
 * or something was read that had been somebody else's. */
inline bool harmed;

inline void harm() {
    if (!harmed) {
        harmed = true;
        say("harmed");
    }
}

/* The last word. What is stopped afterwards, when the program ends, is stopped late. */
inline int farewell() {
    if (!harmed) {
        say("unharmed");
    }
    return 0;
}

/* An owner writes its name all over its block; over a large one here and there, since pages take time. */
inline size_t stride_of(size_t size) { return size > 2 * MEDIUM ? size / 2 / 8 * 8 : size > 2 * SMALL ? 16 : 8; }

inline void sign(char *block, size_t size, uint64_t name) {
    for (size_t at = 0; at + 8 <= size; at += stride_of(size)) {
        memcpy(block + at, &name, 8);
    }
}

inline void look_for(const char *block, size_t size, uint64_t name) {
    for (size_t at = 0; at + 8 <= size; at += stride_of(size)) {
        if (memcmp(block + at, &name, 8) != 0) {
            harm();
            return;
        }
    }
}

/* Every byte, of a block that was filled with one. */
inline void look_for_all(const char *block, size_t size, char byte) {
    if (size > 0 && (block[0] != byte || memcmp(block, block + 1, size - 1) != 0)) {
        harm();
    }
}

/* Bytes that are somebody's, and not the allocator's to give, while a program lives on. */
struct Owned {
    const char *start;
    size_t length;
};

/* What goes on after the bug: blocks of its size and of others are taken and given back, so that quarantines are passed through and
 * caches flushed: 90,000 small ones (hardened_malloc's quarantine of that class holds 4,096 drawn by chance and 4,096 in a row), 5,400
 * medium ones, 3,000 large ones (256 by chance and 1,024 in a row). Each owner looks whether its block is still its own. */
inline void live_on(size_t size, Owned owned = {nullptr, 0}, int shorter = 1) {
    enum { BLOCKS = 200, OTHERS = 20, LARGES = 20 };
    static char *blocks[BLOCKS];
    static bool theirs[BLOCKS];
    static uint64_t name = 0x6E616D65;
    bool large = size > 2 * MEDIUM;
    int rounds = (size <= 2 * SMALL ? 500 : large ? 150 : 30) / shorter;
    int count = large ? OTHERS + LARGES : BLOCKS;
    auto size_of = [=](int i) { return i < OTHERS ? 16 + static_cast<size_t>(i) * 240 : size; };
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) {
            size_t wanted = size_of(i);
            bool clear = i % 8 == 0;
            char *block = clear ? static_cast<char *>(unseen(calloc(1, wanted))) : take(wanted);
            if (block == nullptr) {
                _exit(EXIT_UNFIT);
            }
            blocks[i] = block;
            theirs[i] = block < owned.start + owned.length && owned.start < block + wanted;
            if (theirs[i]) {
                harm(); /* it is not written to: that could only crash the program, by chance */
                continue;
            }
            if (clear) {
                look_for(block, wanted, 0);
            }
            sign(block, wanted, name + static_cast<uint64_t>(i));
        }
        for (int i = 0; i < count; i++) {
            if (!theirs[i]) {
                look_for(blocks[i], size_of(i), name + static_cast<uint64_t>(i));
            }
        }
        for (int i = 0; i < count; i++) {
            free(blocks[(i * 7) % count]);
        }
        name += BLOCKS;
    }
}

/* The same after the last blocks went back, which no quarantine has to let go any more. */
inline void part(size_t size, Owned owned = {nullptr, 0}) { live_on(size, owned, 10); }

#endif
