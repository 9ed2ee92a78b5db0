/* The C++ runtime of whatever program has loaded the shared library; it may have none. Its functions are looked up when they are
 * needed, after memory is out: whatever this library refers to by name is searched for in every program that starts. The dynamic
 * linker is not asked, and no lock of its is taken for what is loaded with the program or is bound to its runtime: see elf_objects.h. */
#include "cxx_runtime.h"
#include "elf_objects.h"
#include "message.h"
#include "os.h"

static const char GET_HANDLER[] = "_ZSt15get_new_handlerv", THROW[] = "_ZSt17__throw_bad_allocv", NEW[] = "_Znwm";

typedef void *operator_new(size_t);

/* In the object or in those that it was linked with. */
static void *function_beside(struct elf_object object, const char *name) {
    void *found = elf_function_in(object, name);
    return found != NULL ? found : elf_function_needed(object, name);
}

/* A function of the runtime of the object that the caller lies in, the one that every operator new calls; else of the program's runtime, or of
 * one that only a plugin has brought. */
static void *runtime_of(const void *caller) {
    void *found = function_beside(elf_object_of(caller), GET_HANDLER);
    return found != NULL ? found : elf_function_anywhere(GET_HANDLER);
}

void *cxx_runtime_function(const char *name, const void *caller) {
    void *runtime = runtime_of(caller);
    return runtime == NULL ? NULL : function_beside(elf_object_of(runtime), name);
}

new_handler cxx_new_handler(const void *caller) {
    new_handler (*get)(void) = (new_handler (*)(void))runtime_of(caller);
    return get == NULL ? NULL : get();
}

/* By the runtime's function for it. One that is linked into a plugin may have no more than its own operator new, which then throws when it is
 * asked for what nobody has: its own, and not another allocator's. */
static void throw_by(const void *runtime) {
    struct elf_object object = elf_object_of(runtime);
    void (*throw_it)(void) = (void (*)(void))function_beside(object, THROW);
    if (throw_it != NULL) {
        throw_it();
    }
    operator_new *ask = (operator_new *)elf_function_in(object, NEW);
    if (ask != NULL) {
        (void)ask(SIZE_MAX);
    }
}

_Noreturn void cxx_throw_bad_alloc(const void *caller) {
    void *runtime = runtime_of(caller);
    if (runtime != NULL) {
        throw_by(runtime);
    }
    void (*throw_it)(void) = (void (*)(void))elf_function_anywhere(THROW);
    if (throw_it != NULL) {
        throw_it();
    }
    struct message message = {0};
    message_text(&message, "out of memory in operator new, and no C++ runtime to throw std::bad_alloc");
    message_print(&message);
    os_abort();
}
