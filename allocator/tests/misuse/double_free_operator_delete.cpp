// An object is deleted twice.
#include <new>

#include "misuse.h"

int main() {
    void *block = unseen(::operator new(40));
    void *again = unseen(block);
    announce("double free: pointer %p, size class 48 bytes", block);
    ::operator delete(block);
    ::operator delete(again);
    flush();
    return unnoticed();
}
