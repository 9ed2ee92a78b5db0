/* Found in the objects that the dynamic linker searches before this library, and without asking it: see elf_objects.h. Looked up when the first
 * operator is called that goes by another: a program without C++ pays nothing. */
#include "cxx_operators.h"
#include "elf_objects.h"
#include "os.h"

#define NAME(name, mangled) #mangled,
static const char *const names[CXX_OPERATOR_COUNT] = {CXX_OPERATORS(NAME)};

_Atomic uint8_t cxx_maybe_replaced = 1;

/* Relaxed: all that is stored was there before the process. NULL until one thread has looked, and where all are the library's own. */
static void *in_force[CXX_OPERATOR_COUNT] SEALED;

/* release, and acquire: the pages are closed before another thread opens them. No thread waits: the constructor calls the linker meanwhile. */
static _Atomic bool may_keep;

void cxx_may_keep(void) { atomic_store_explicit(&may_keep, true, memory_order_release); }

/* Once, by one thread; others look for themselves meanwhile. If the kernel refuses, each call does so. */
static void keep(void *const *found) {
    static _Atomic bool begun; /* relaxed: only who sets it first writes */
    void *const places[] = {in_force, &in_force[CXX_OPERATOR_COUNT - 1]};
    if (!atomic_load_explicit(&may_keep, memory_order_acquire) ||
        atomic_exchange_explicit(&begun, true, memory_order_relaxed) || !os_seal(places, 2, false)) {
        return;
    }
    for (enum cxx_operator which = 0; which < CXX_OPERATOR_COUNT; which++) {
        __atomic_store_n(&in_force[which], found[which], __ATOMIC_RELAXED);
    }
    (void)os_seal(places, 2, true);
}

static void *look_up(enum cxx_operator wanted) {
    struct elf_search search;
    void *found[CXX_OPERATOR_COUNT] = {NULL};
    bool own = true;
    elf_search_begin(&search, names, found, CXX_OPERATOR_COUNT);
    elf_search_before(&search);
    for (enum cxx_operator which = 0; which < CXX_OPERATOR_COUNT; which++) {
        found[which] = found[which] != NULL ? found[which] : cxx_own(which);
        own &= found[which] == cxx_own(which);
    }
    if (own) {
        atomic_store_explicit(&cxx_maybe_replaced, 0, memory_order_relaxed);
    } else {
        keep(found);
    }
    return found[wanted];
}

OUT_OF_LINE void *cxx_in_force(enum cxx_operator which) {
    void *found = __atomic_load_n(&in_force[which], __ATOMIC_RELAXED);
    return found != NULL ? found : look_up(which);
}
