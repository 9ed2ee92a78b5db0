// A plugin that may bring a C++ runtime of its own: what its operators new throw has to be caught here, and its own handler is the one
// that is asked.
#include <cstddef>
#include <new>

namespace {

int handled;

void handle() {
    handled++;
    std::set_new_handler(nullptr);
}

} // namespace

// 0 when all is as it has to be; else the number of what is not. `size` is more than there is.
extern "C" int own_runtime_plugin(std::size_t size) {
    handled = 0;
    std::set_new_handler(handle);
    try {
        char *volatile block = new char[size];
        (void)block;
        return 1;
    } catch (const std::bad_alloc &) {
        if (handled != 1) {
            return 2;
        }
    } catch (...) {
        return 3;
    }
    try {
        struct alignas(64) Wide {
            char bytes[64];
        };
        Wide *volatile block = new Wide[size / sizeof(Wide)];
        (void)block;
        return 4;
    } catch (const std::bad_alloc &) {
    } catch (...) {
        return 5;
    }
    std::set_new_handler(handle);
    char *volatile none = new (std::nothrow) char[size];
    if (none != nullptr || handled != 2) {
        return 6;
    }
    char *volatile block = new char[100];
    delete[] block;
    return 0;
}
