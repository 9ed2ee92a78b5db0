/* The C++ runtime of whatever program has loaded the shared library; it may have none. Its functions are looked up when they are
 * needed, after memory is out, and so are those that look in other libraries: whatever this library refers to by name is
 * searched for in every program that starts. */
#include <dlfcn.h>

#include "cxx_runtime.h"
#include "message.h"
#include "os.h"

static const char GET_HANDLER[] = "_ZSt15get_new_handlerv", THROW[] = "_ZSt17__throw_bad_allocv", NEW[] = "_Znwm";

typedef void *operator_new(size_t);

static void *opened(const char *library) {
    void *(*open_library)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen");
    return open_library == NULL ? NULL : open_library(library, RTLD_LAZY | RTLD_NOLOAD);
}

/* The program's own reference keeps it. */
static void close_again(void *library) {
    int (*close_library)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "dlclose");
    if (close_library != NULL) {
        (void)close_library(library);
    }
}

/* Where the address lies; nothing is known of it where `dli_fbase` is NULL. */
static Dl_info place_of(const void *address) {
    int (*look_up)(const void *, Dl_info *) = (int (*)(const void *, Dl_info *))dlsym(RTLD_DEFAULT, "dladdr");
    Dl_info place = {0};
    if (address == NULL || look_up == NULL || look_up(address, &place) == 0) {
        place.dli_fbase = NULL;
    }
    return place;
}

/* The library in which the address lies; not the program itself. */
static void *library_of(const void *address) {
    Dl_info place = place_of(address);
    return place.dli_fbase == NULL || place.dli_fname == NULL ? NULL : opened(place.dli_fname);
}

/* The function of that name in the library or in those that it needs. */
static void *function_in(void *library, const char *name) {
    if (library == NULL) {
        return NULL;
    }
    void *found = dlsym(library, name);
    close_again(library);
    return found;
}

/* The same for the library of that address. */
static void *function_beside(const void *address, const char *name) { return function_in(library_of(address), name); }

/* A function of the runtime of the library that the caller lies in; the one that every operator new calls. */
static void *caller_runtime(const void *caller) { return function_beside(caller, GET_HANDLER); }

void *cxx_runtime_function(const char *name, const void *caller) {
    void *found = function_beside(caller_runtime(caller), name);
    found = found != NULL ? found : function_in(opened("libstdc++.so.6"), name);
    return found != NULL ? found : function_in(opened("libc++.so.1"), name);
}

/* Where the program would find it; else in the runtime that only a plugin has brought. */
static void *program_function(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    return found != NULL ? found : cxx_runtime_function(name, NULL);
}

new_handler cxx_new_handler(const void *caller) {
    void *found = caller_runtime(caller);
    new_handler (*get)(void) = (new_handler (*)(void))(found != NULL ? found : program_function(GET_HANDLER));
    return get == NULL ? NULL : get();
}

/* By the runtime's function for it. One that is linked into a plugin may have no more than its own operator new, which then throws when it is
 * asked for what nobody has. */
static void throw_by(const void *runtime) {
    void (*throw_it)(void) = (void (*)(void))function_beside(runtime, THROW);
    if (throw_it != NULL) {
        throw_it();
    }
    operator_new *ask = (operator_new *)function_beside(runtime, NEW);
    if (ask != NULL &&
        place_of((void *)ask).dli_fbase == place_of(runtime).dli_fbase) { /* and not another allocator's */
        (void)ask(SIZE_MAX);
    }
}

_Noreturn void cxx_throw_bad_alloc(const void *caller) {
    void *runtime = caller_runtime(caller);
    if (runtime != NULL) {
        throw_by(runtime);
    }
    void (*throw_it)(void) = (void (*)(void))program_function(THROW);
    if (throw_it != NULL) {
        throw_it();
    }
    struct message message = {0};
    message_text(&message, "out of memory in operator new, and no C++ runtime to throw std::bad_alloc");
    message_print(&message);
    os_abort();
}
