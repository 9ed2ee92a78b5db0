/* Found in the objects that the dynamic linker searches before this library, and without asking it: see elf_objects.h. Looked up when the first
 * operator is called that goes by another: a program without C++ pays nothing. */
#include "cxx_operators.h"
#include "elf_objects.h"

#define NAME(name, mangled) #mangled,
static const char *const names[CXX_OPERATOR_COUNT] = {CXX_OPERATORS(NAME)};

void *cxx_find(enum cxx_operator which) { return elf_function_before(cxx_own(which), names[which]); }
