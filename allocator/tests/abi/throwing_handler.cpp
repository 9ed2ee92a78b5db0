// A new-handler that throws: operator new passes the exception on; the nothrow one, which is defined by the outcome of
// the other, returns a null pointer.
#include <cstdint>
#include <new>

#include "entry.h"
#include "expect.h"
#include "serving.h"

namespace {

struct Refused : std::bad_alloc {};

[[noreturn]] void refuse() { throw Refused(); }

} // namespace

int main() {
    require_serving();
    std::set_new_handler(refuse);
    std::size_t size = unseen_size(PTRDIFF_MAX);
    bool passed = false;
    try {
        (void)unseen(::operator new(size));
    } catch (const Refused &) {
        passed = true;
    }
    EXPECT(passed, "operator new did not pass on what its handler threw");
    EXPECT(unseen(::operator new(size, std::nothrow)) == nullptr, "nothrow new gave a block");
    EXPECT(unseen(::operator new[](size, std::align_val_t(64), std::nothrow)) == nullptr, "nothrow new gave a block");
    return 0;
}
