// Code made at run time, with frames that are registered and deregistered: libgcc aborts if it does not know what is deregistered.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/mman.h>

extern "C" void __register_frame(void *begin);
extern "C" void __deregister_frame(void *begin);

namespace {

// A function that calls its argument, and what the tables say of it. Source of the layout: the DWARF standard, version 5, 6.4.
#if defined(__x86_64__)
const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
const unsigned char common[] = {1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1};
const unsigned char steps[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};
#elif defined(__aarch64__) // stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret
const unsigned char code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00,
                              0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
const unsigned char common[] = {1, 0, 4, 0x78, 30, 0x0c, 31, 0};
const unsigned char steps[] = {0x41, 0x0e, 16, 0x9d, 2, 0x9e, 1};
#else
const unsigned char code[] = {0}, common[] = {1, 0, 1, 0x78, 16}, steps[] = {0};
#endif

unsigned char tables[256];

// One entry, of a length that is written once it is known; returns where the next one begins.
unsigned char *begin(unsigned char *at) { return at + 4; }
unsigned char *end(unsigned char *entry, unsigned char *at) {
    while ((at - entry) % 8 != 4) {
        *at++ = 0;
    }
    auto length = static_cast<std::uint32_t>(at - entry - 4);
    std::memcpy(entry, &length, sizeof length);
    return at;
}

unsigned char *add(unsigned char *at, const void *bytes, std::size_t count) {
    std::memcpy(at, bytes, count);
    return at + count;
}

void describe(const void *function) {
    const std::uint32_t none = 0;
    unsigned char *at = add(begin(tables), &none, sizeof none);
    unsigned char *entry = end(tables, add(at, common, sizeof common));
    auto back = static_cast<std::uint32_t>(entry + 4 - tables);
    auto start = reinterpret_cast<std::uint64_t>(function);
    std::uint64_t bytes = sizeof code;
    at = add(begin(entry), &back, sizeof back);
    at = add(at, &start, sizeof start);
    at = add(at, &bytes, sizeof bytes);
    at = end(entry, add(at, steps, sizeof steps));
    add(at, &none, sizeof none);
}

void thrower() { throw std::runtime_error(std::string(200, 'x')); }

} // namespace

// 1 if the exception was caught.
extern "C" int generated_code_plugin() {
    if (sizeof code == 1) {
        return 1; // none was written for this machine
    }
    void *function = mmap(nullptr, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (function == MAP_FAILED) {
        return 0;
    }
    std::memcpy(function, code, sizeof code);
    auto *first = static_cast<char *>(function);
    __builtin___clear_cache(first, first + sizeof code);
    describe(function);
    __register_frame(tables);
    int caught = 0;
    try {
        reinterpret_cast<void (*)(void (*)())>(function)(thrower);
    } catch (const std::exception &) {
        caught = 1;
    }
    __deregister_frame(tables);
    munmap(function, 65536);
    return caught;
}
