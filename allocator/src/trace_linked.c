/* What traces need of libc, in a program that is linked with the static library: what that program has. */
#include <errno.h>

#include "elf_objects.h"
#include "trace.h"

extern int find_object(void *address, void *found) __asm__("_dl_find_object") __attribute__((weak));

const char *trace_find(void) {
    elf_find_object = find_object;
    return program_invocation_name;
}
