/* The linker has put the program's definitions in the place of the archive's, which are weak. */
#include "cxx_operators.h"

#define DECLARE(name, mangled) extern void mangled(void);
CXX_OPERATORS(DECLARE)

void *cxx_find(enum cxx_operator which) {
#define ADDRESS(name, mangled) [CXX_##name] = (void *)(mangled),
    static void *const found[CXX_OPERATOR_COUNT] = {CXX_OPERATORS(ADDRESS)};
    return found[which];
}
