/* The C++ runtime of whatever program has loaded the shared library; it may have none. */
#include <stdlib.h>

#include "cxx_runtime.h"
#include "message.h"

/* std::get_new_handler() and std::__throw_bad_alloc(), of libstdc++ or libc++. */
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern _Noreturn void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

new_handler cxx_new_handler(void) { return _ZSt15get_new_handlerv != NULL ? _ZSt15get_new_handlerv() : NULL; }

_Noreturn void cxx_throw_bad_alloc(void) {
    if (_ZSt17__throw_bad_allocv != NULL) {
        _ZSt17__throw_bad_allocv();
    }
    struct message message = {0};
    message_text(&message, "out of memory in operator new, and no C++ runtime to throw std::bad_alloc");
    message_print(&message);
    abort();
}
