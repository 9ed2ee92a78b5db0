#include "direct_binding.h"

#include "elf_objects.h"
#include "options.h"

#define NAME(name) [DIRECT_##name] = #name,
static const char *const names[DIRECT_COUNT] = {DIRECT_ALWAYS(NAME) DIRECT_IN_MODES(NAME) DIRECT_AT_START(NAME)};

void *direct_functions[DIRECT_KEPT] INTERNAL __attribute__((weak));

void *direct_function(enum direct_function which) {
    void *found = which < DIRECT_KEPT ? __atomic_load_n(&direct_functions[which], __ATOMIC_RELAXED) : NULL;
    return found != NULL ? found : elf_function_of_libc(names[which]);
}

void direct_bind(void) {
    enum direct_function end = modes() == 0 ? DIRECT_MODES : DIRECT_KEPT;
    for (enum direct_function which = 0; which < end; which++) {
        __atomic_store_n(&direct_functions[which], elf_function_of_libc(names[which]), __ATOMIC_RELAXED);
    }
}
