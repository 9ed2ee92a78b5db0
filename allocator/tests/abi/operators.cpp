// Every operator new can be undone by every operator delete the language allows for it, keeps its contents and its
// alignment until then, fails as the standard says, and asks the new-handler first.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <new>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

namespace {

constexpr std::size_t sizes[] = {0, 1, 16, 24, 128, 129, 1000, 4096, 65536, 262144, 262145, 1 << 20};
constexpr std::size_t alignments[] = {32, 64, 4096, 65536, 1 << 20};

using Allocate = void *(*)(std::size_t);
using Release = void (*)(void *, std::size_t);
using AllocateAligned = void *(*)(std::size_t, std::align_val_t);
using ReleaseAligned = void (*)(void *, std::size_t, std::align_val_t);

// The operators are called by name and not through new-expressions, which a compiler may merge or leave out.
const Allocate single_news[] = {
    [](std::size_t size) { return ::operator new(size); },
    [](std::size_t size) { return ::operator new(size, std::nothrow); },
};
const Release single_deletes[] = {
    [](void *block, std::size_t) { ::operator delete(block); },
    [](void *block, std::size_t) { ::operator delete(block, std::nothrow); },
    [](void *block, std::size_t size) { ::operator delete(block, size); },
};
const Allocate array_news[] = {
    [](std::size_t size) { return ::operator new[](size); },
    [](std::size_t size) { return ::operator new[](size, std::nothrow); },
};
const Release array_deletes[] = {
    [](void *block, std::size_t) { ::operator delete[](block); },
    [](void *block, std::size_t) { ::operator delete[](block, std::nothrow); },
    [](void *block, std::size_t size) { ::operator delete[](block, size); },
};
const AllocateAligned single_aligned_news[] = {
    [](std::size_t size, std::align_val_t alignment) { return ::operator new(size, alignment); },
    [](std::size_t size, std::align_val_t alignment) { return ::operator new(size, alignment, std::nothrow); },
};
const ReleaseAligned single_aligned_deletes[] = {
    [](void *block, std::size_t, std::align_val_t alignment) { ::operator delete(block, alignment); },
    [](void *block, std::size_t, std::align_val_t alignment) { ::operator delete(block, alignment, std::nothrow); },
    [](void *block, std::size_t size, std::align_val_t alignment) { ::operator delete(block, size, alignment); },
};
const AllocateAligned array_aligned_news[] = {
    [](std::size_t size, std::align_val_t alignment) { return ::operator new[](size, alignment); },
    [](std::size_t size, std::align_val_t alignment) { return ::operator new[](size, alignment, std::nothrow); },
};
const ReleaseAligned array_aligned_deletes[] = {
    [](void *block, std::size_t, std::align_val_t alignment) { ::operator delete[](block, alignment); },
    [](void *block, std::size_t, std::align_val_t alignment) { ::operator delete[](block, alignment, std::nothrow); },
    [](void *block, std::size_t size, std::align_val_t alignment) { ::operator delete[](block, size, alignment); },
};

void fill(void *block, std::size_t size, std::size_t alignment) {
    EXPECT(block != nullptr, "operator new of %zu bytes gave NULL", size);
    EXPECT(reinterpret_cast<std::uintptr_t>(block) % alignment == 0, "%p is not aligned to %zu", block, alignment);
    pattern_fill(block, 0, size, size);
}

// Whoever cleans up reads errno afterwards.
template <typename Deed> void keeping_errno(Deed deed) {
    constexpr int sentinel = 12345;
    errno = sentinel;
    deed();
    EXPECT(errno == sentinel, "an operator changed errno to %d", errno);
}

void verify(const void *block, std::size_t size) {
    std::size_t mismatch = pattern_mismatch(block, size, size);
    EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed", mismatch, size);
}

template <std::size_t news, std::size_t deletes>
void cross(const Allocate (&allocators)[news], const Release (&releasers)[deletes]) {
    for (Allocate allocate : allocators) {
        for (Release release : releasers) {
            for (std::size_t size : sizes) {
                void *block = unseen(allocate(size));
                void *other = unseen(allocate(size));
                EXPECT(block != other, "two blocks of %zu bytes at %p", size, block);
                fill(block, size, size >= 16 ? 16 : 8);
                fill(other, size, size >= 16 ? 16 : 8);
                verify(block, size);
                keeping_errno([&] { release(block, size); });
                verify(other, size);
                keeping_errno([&] { release(other, size); });
            }
        }
        // C code may free what C++ allocated with the plain operators: both lead to one heap.
        std::free(unseen(allocate(100)));
    }
    for (Release release : releasers) {
        keeping_errno([&] { release(nullptr, 8); });
    }
}

template <std::size_t news, std::size_t deletes>
void cross_aligned(const AllocateAligned (&allocators)[news], const ReleaseAligned (&releasers)[deletes]) {
    for (AllocateAligned allocate : allocators) {
        for (ReleaseAligned release : releasers) {
            for (std::size_t size : sizes) {
                for (std::size_t alignment : alignments) {
                    void *block = unseen(allocate(size, std::align_val_t(alignment)));
                    fill(block, size, alignment);
                    verify(block, size);
                    keeping_errno([&] { release(block, size, std::align_val_t(alignment)); });
                }
            }
        }
    }
    for (ReleaseAligned release : releasers) {
        keeping_errno([&] { release(nullptr, 64, std::align_val_t(64)); });
    }
}

constexpr std::size_t impossible = PTRDIFF_MAX;
int handler_calls = 0;

void give_up_after_three() {
    if (++handler_calls == 3) {
        std::set_new_handler(nullptr);
    }
}

template <typename Call> bool throws_bad_alloc(Call call) {
    try {
        (void)unseen(call());
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

void check_failure() {
    std::size_t size = unseen_size(impossible);
    EXPECT(throws_bad_alloc([=] { return ::operator new(size); }), "operator new did not throw");
    EXPECT(throws_bad_alloc([=] { return ::operator new[](size); }), "operator new[] did not throw");
    EXPECT(throws_bad_alloc([=] { return ::operator new(size, std::align_val_t(64)); }), "aligned new did not throw");
    EXPECT(throws_bad_alloc([=] { return ::operator new[](size, std::align_val_t(64)); }),
           "aligned new[] did not throw");
    EXPECT(unseen(::operator new(size, std::nothrow)) == nullptr, "nothrow new gave a block");
    EXPECT(unseen(::operator new[](size, std::nothrow)) == nullptr, "nothrow new[] gave a block");
    EXPECT(unseen(::operator new(size, std::align_val_t(64), std::nothrow)) == nullptr, "aligned nothrow new");
    EXPECT(unseen(::operator new[](size, std::align_val_t(64), std::nothrow)) == nullptr, "aligned nothrow new[]");
    // Both kinds call the handler until there is none.
    for (bool nothrow : {false, true}) {
        handler_calls = 0;
        std::set_new_handler(give_up_after_three);
        if (nothrow) {
            EXPECT(unseen(::operator new(size, std::nothrow)) == nullptr, "nothrow new gave a block");
        } else {
            EXPECT(throws_bad_alloc([=] { return ::operator new(size); }), "operator new did not throw");
        }
        EXPECT(handler_calls == 3, "the new-handler was called %d times, not 3", handler_calls);
    }
}

}  // namespace

int main() {
    require_serving();
    cross(single_news, single_deletes);
    cross(array_news, array_deletes);
    cross_aligned(single_aligned_news, single_aligned_deletes);
    cross_aligned(array_aligned_news, array_aligned_deletes);
    check_failure();
    return 0;
}
