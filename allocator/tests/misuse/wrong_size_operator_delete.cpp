// An object is deleted through a pointer to a larger type, without a virtual destructor.
#include <new>

#include "misuse.h"

int main() {
    void *block = unseen(::operator new(40));
    announce("wrong size: pointer %p, 64 bytes given, size class 48 bytes", block);
    ::operator delete(block, unseen_size(64));
    return unnoticed();
}
