/* What traces need of libc, in a program that is linked with the static library: what that program has. */
#include <errno.h>
#include <signal.h>

#include "direct_binding.h"
#include "elf_objects.h"
#include "os.h"
#include "trace.h"

extern int find_object(void *address, void *found) __asm__("_dl_find_object") __attribute__((weak));

const char *trace_find(void) {
    elf_find *own = (elf_find *)direct_function(DIRECT__dl_find_object);
    elf_find_object = own != NULL ? own : find_object;
    return program_invocation_name;
}

int trace_sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    return DIRECT(sigaction)(number, action, before);
}

__attribute__((constructor)) static void find_all(int arguments, char **argument) {
    direct_bind();
    os_find_clock(arguments, argument);
}
