// A program that replaces some operators alone, as the standard allows: those that go by them call the program's. Each of its blocks stands
// behind a note of the program's, which nobody else may take for a block's beginning.
//
// REPLACED says which: the single forms, or the array forms alone, whose blocks no other form may touch.
#ifndef FREESTONE_REPLACED_OPERATORS_H
#define FREESTONE_REPLACED_OPERATORS_H

#define SINGLES 1
#define ARRAYS 2

#include <cstdint>
#include <cstdlib>
#include <new>

#include "expect.h"
#include "serving.h"

namespace {

constexpr std::size_t TOO_LARGE = 12345678;
constexpr std::uintptr_t NOTE = 0x5eed5eed;

struct Note {
    void *block;
    std::uintptr_t kind;
};

long made, ended;

__attribute__((noinline)) void *make(std::size_t size, std::size_t alignment, std::uintptr_t kind) {
    if (size == TOO_LARGE) {
        throw std::bad_alloc();
    }
    std::size_t before = alignment > sizeof(Note) ? alignment : sizeof(Note);
    auto *block =
        static_cast<unsigned char *>(std::aligned_alloc(before, (before + size + before - 1) / before * before));
    EXPECT(block != nullptr, "aligned_alloc failed");
    auto *note = reinterpret_cast<Note *>(block + before) - 1;
    note->block = block;
    note->kind = NOTE + kind;
    made++;
    return block + before;
}

__attribute__((noinline)) void end(void *block, std::uintptr_t kind) {
    if (block != nullptr) {
        auto *note = static_cast<Note *>(block) - 1;
        EXPECT(note->kind == NOTE + kind, "a block comes to an operator that is not its own");
        note->kind = 0;
        ended++;
        std::free(note->block);
    }
}

} // namespace

// The sized forms are left out on purpose.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wsized-deallocation"
#endif
#if REPLACED == ARRAYS
void *operator new[](std::size_t size) { return make(size, 1, 1); }
void operator delete[](void *block) noexcept { end(block, 1); }
void *operator new[](std::size_t size, std::align_val_t alignment) {
    return make(size, static_cast<std::size_t>(alignment), 2);
}
void operator delete[](void *block, std::align_val_t) noexcept { end(block, 2); }
#else
void *operator new(std::size_t size) { return make(size, 1, 1); }
void operator delete(void *block) noexcept { end(block, 1); }
void *operator new(std::size_t size, std::align_val_t alignment) {
    return make(size, static_cast<std::size_t>(alignment), 2);
}
void operator delete(void *block, std::align_val_t) noexcept { end(block, 2); }
#endif

namespace {

constexpr std::size_t sizes[] = {1, 24, 1000, 70000};
constexpr auto ALIGNMENT = std::align_val_t{64};

constexpr bool SINGLE_REPLACED = REPLACED == SINGLES;

template <typename New, typename Delete> void pair(bool replaced, New take, Delete give) {
    for (std::size_t size : sizes) {
        long before = made;
        void *block = take(size);
        EXPECT(block != nullptr && made - before == (replaced ? 1 : 0), "%ld of the program's blocks were made",
               made - before);
        give(block, size);
        EXPECT(made == ended, "%ld of the program's blocks were not ended", made - ended);
    }
}

template <typename New> void with_each_delete(bool replaced, New take) {
    pair(replaced, take, [](void *block, std::size_t) { ::operator delete(block); });
    pair(replaced, take, [](void *block, std::size_t size) { ::operator delete(block, size); });
    pair(replaced, take, [](void *block, std::size_t) { ::operator delete(block, std::nothrow); });
}

template <typename New> void with_each_array_delete(New take) {
    pair(true, take, [](void *block, std::size_t) { ::operator delete[](block); });
    pair(true, take, [](void *block, std::size_t size) { ::operator delete[](block, size); });
    pair(true, take, [](void *block, std::size_t) { ::operator delete[](block, std::nothrow); });
}

template <typename New> void with_each_aligned_delete(bool replaced, New take) {
    pair(replaced, take, [](void *block, std::size_t) { ::operator delete(block, ALIGNMENT); });
    pair(replaced, take, [](void *block, std::size_t size) { ::operator delete(block, size, ALIGNMENT); });
    pair(replaced, take, [](void *block, std::size_t) { ::operator delete(block, ALIGNMENT, std::nothrow); });
}

template <typename New> void with_each_aligned_array_delete(New take) {
    pair(true, take, [](void *block, std::size_t) { ::operator delete[](block, ALIGNMENT); });
    pair(true, take, [](void *block, std::size_t size) { ::operator delete[](block, size, ALIGNMENT); });
    pair(true, take, [](void *block, std::size_t) { ::operator delete[](block, ALIGNMENT, std::nothrow); });
}

template <typename New> bool throws(New take) {
    try {
        take();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

} // namespace

int main() {
    require_serving();
    with_each_delete(SINGLE_REPLACED, [](std::size_t size) { return ::operator new(size); });
    with_each_delete(SINGLE_REPLACED, [](std::size_t size) { return ::operator new(size, std::nothrow); });
    with_each_aligned_delete(SINGLE_REPLACED, [](std::size_t size) { return ::operator new(size, ALIGNMENT); });
    with_each_aligned_delete(SINGLE_REPLACED,
                             [](std::size_t size) { return ::operator new(size, ALIGNMENT, std::nothrow); });
    with_each_array_delete([](std::size_t size) { return ::operator new[](size); });
    with_each_array_delete([](std::size_t size) { return ::operator new[](size, std::nothrow); });
    with_each_aligned_array_delete([](std::size_t size) { return ::operator new[](size, ALIGNMENT); });
    with_each_aligned_array_delete([](std::size_t size) { return ::operator new[](size, ALIGNMENT, std::nothrow); });
    EXPECT(throws([] { return ::operator new[](TOO_LARGE); }), "what the program's operator throws is not thrown");
    EXPECT(::operator new[](TOO_LARGE, std::nothrow) == nullptr,
           "nothrow new[] gives what the program's operator refuses");
    EXPECT(::operator new[](TOO_LARGE, ALIGNMENT, std::nothrow) == nullptr, "and so does the aligned one");
    if (SINGLE_REPLACED) {
        EXPECT(::operator new(TOO_LARGE, std::nothrow) == nullptr,
               "nothrow new gives what the program's operator refuses");
    }
    return 0;
}

#endif
