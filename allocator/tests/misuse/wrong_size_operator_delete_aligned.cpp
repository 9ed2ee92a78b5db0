// An aligned object is deleted as a larger one.
#include <new>

#include "misuse.h"

int main() {
    void *block = unseen(::operator new(128, std::align_val_t(128)));
    announce("wrong size: pointer %p, 256 bytes given, size class 128 bytes", block);
    ::operator delete(block, unseen_size(256), std::align_val_t(128));
    return unnoticed();
}
