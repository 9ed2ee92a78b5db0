/* The C++ runtime of whatever program has loaded the shared library; it may have none. Its functions are looked up when they are
 * needed, after memory is out, and so are those that look in other libraries: whatever this library refers to by name is
 * searched for in every program that starts. */
#include <dlfcn.h>

#include "cxx_runtime.h"
#include "message.h"
#include "os.h"

void *cxx_runtime_function(const char *name) {
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++.so.1"};
    void *(*open_library)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen");
    int (*close_library)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "dlclose");
    for (size_t i = 0; open_library != NULL && i < sizeof runtimes / sizeof runtimes[0]; i++) {
        void *runtime = open_library(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (runtime != NULL) {
            void *found = dlsym(runtime, name);
            if (close_library != NULL) {
                (void)close_library(runtime); /* the program's own reference keeps it */
            }
            return found;
        }
    }
    return NULL;
}

/* Where the program would find it; else the runtime that only a plugin has brought. */
static void *function(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    return found != NULL ? found : cxx_runtime_function(name);
}

new_handler cxx_new_handler(void) {
    new_handler (*get)(void) = (new_handler (*)(void))function("_ZSt15get_new_handlerv");
    return get == NULL ? NULL : get();
}

_Noreturn void cxx_throw_bad_alloc(void) {
    void (*throw_it)(void) = (void (*)(void))function("_ZSt17__throw_bad_allocv");
    if (throw_it != NULL) {
        throw_it();
    }
    struct message message = {0};
    message_text(&message, "out of memory in operator new, and no C++ runtime to throw std::bad_alloc");
    message_print(&message);
    os_abort();
}
