// See own_operators.cpp.
#include <stdexcept>

extern "C" int *own_operators_make() { return new int(3); }

extern "C" void own_operators_unmake(int *block) {
    try {
        if (block == nullptr) {
            throw std::runtime_error("no block");
        }
        delete block;
    } catch (const std::exception &) {
    }
}
