/* A preload that only notes, in every process it comes into, which program that is and which file serves its malloc,
 * calloc, realloc and free: one line, appended to the file PROVIDER_NOTES names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The file whose code runs when the program calls `entry`. */
static const char *provider_of(const char *entry) {
    Dl_info home;
    const Elf64_Sym *symbol = NULL;
    void *address = dlsym(RTLD_DEFAULT, entry);
    if (address == NULL || dladdr1(address, &home, (void **)&symbol, RTLD_DL_SYMENT) == 0) {
        return "?";
    }
    /* An executable that takes the address of a function it does not define lends it the address of its own call
     * stub. The definition is then the next one: this library is preloaded before any that could have it. */
    if (symbol != NULL && symbol->st_shndx == SHN_UNDEF) {
        address = dlsym(RTLD_NEXT, entry);
        if (address == NULL || dladdr(address, &home) == 0) {
            return "?";
        }
    }
    return home.dli_fname;
}

__attribute__((constructor)) static void note(void) {
    const char *notes = getenv("PROVIDER_NOTES");
    if (notes == NULL) {
        return;
    }
    char program[1024];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : length] = '\0';
    static const char *const entries[] = {"malloc", "calloc", "realloc", "free"};
    char line[8192];
    int used = snprintf(line, sizeof line, "%s", program);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        used += snprintf(line + used, sizeof line - (size_t)used, "\t%s", provider_of(entries[i]));
    }
    line[used++] = '\n';
    int file = open(notes, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0) {
        (void)!write(file, line, (size_t)used); /* one write: lines of several processes do not mix */
        close(file);
    }
}
