// A library whose operator new(size_t) and delete(void *) put a note before each block, and stop who gives it a block without.
#include <cstdlib>
#include <new>

namespace {

struct alignas(16) Note {
    const void *own;
};

} // namespace

extern "C" long operators_library_blocks;
long operators_library_blocks;

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wsized-deallocation" // left out on purpose
#endif

void *operator new(std::size_t size) {
    auto *note = static_cast<Note *>(std::malloc(sizeof(Note) + size));
    if (note == nullptr) {
        throw std::bad_alloc();
    }
    note->own = note;
    operators_library_blocks++;
    return note + 1;
}

void operator delete(void *block) noexcept {
    if (block == nullptr) {
        return;
    }
    Note *note = static_cast<Note *>(block) - 1;
    if (note->own != note) {
        std::abort();
    }
    note->own = nullptr;
    operators_library_blocks--;
    std::free(note);
}
