// An array is deleted as a longer one.
#include <new>

#include "misuse.h"

int main() {
    void *block = unseen(::operator new[](1000));
    announce("wrong size: pointer %p, 1025 bytes given, size class 1024 bytes", block);
    ::operator delete[](block, unseen_size(1025));
    return unnoticed();
}
