/* The C++ runtime that a program with C++ is linked with. Strong references: weak ones would not take these functions
 * out of a static C++ library. */
#include "cxx_runtime.h"

extern new_handler _ZSt15get_new_handlerv(void);        /* std::get_new_handler() */
extern _Noreturn void _ZSt17__throw_bad_allocv(void); /* std::__throw_bad_alloc() */

new_handler cxx_new_handler(const void *caller) {
    (void)caller;
    return _ZSt15get_new_handlerv();
}

_Noreturn void cxx_throw_bad_alloc(const void *caller) {
    (void)caller;
    _ZSt17__throw_bad_allocv();
}
