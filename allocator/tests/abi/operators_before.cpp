// A program whose operators are those of a library that the dynamic linker searches before this one: all forms go by them.
#include <dlfcn.h>

#include <new>

#include "expect.h"
#include "serving.h"

namespace {

using New = void *(*)(std::size_t);
using Delete = void (*)(void *, std::size_t);

const New news[] = {
    [](std::size_t size) { return ::operator new(size); },
    [](std::size_t size) { return ::operator new(size, std::nothrow); },
    [](std::size_t size) { return ::operator new[](size); },
    [](std::size_t size) { return ::operator new[](size, std::nothrow); },
};
const Delete deletes[] = {
    [](void *block, std::size_t) { ::operator delete(block); },
    [](void *block, std::size_t size) { ::operator delete(block, size); },
    [](void *block, std::size_t) { ::operator delete(block, std::nothrow); },
    [](void *block, std::size_t) { ::operator delete[](block); },
    [](void *block, std::size_t size) { ::operator delete[](block, size); },
    [](void *block, std::size_t) { ::operator delete[](block, std::nothrow); },
};

} // namespace

int main() {
    require_serving();
    const auto *blocks = static_cast<const long *>(dlsym(RTLD_DEFAULT, "operators_library_blocks"));
    EXPECT(blocks != nullptr, "the library with the operators is not there");
    for (New take : news) {
        for (Delete give : deletes) {
            long before = *blocks;
            void *block = take(100);
            EXPECT(block != nullptr && *blocks == before + 1, "the library's operator was not asked");
            give(block, 100);
            EXPECT(*blocks == before, "the library's block was not given to it");
        }
    }
    return 0;
}
