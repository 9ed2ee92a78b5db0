/* The proof of service for any allocator: the programs of libfreestone's tests are run under others as well. HAZARD_FILE names
 * the library that malloc, calloc, realloc and free have to come from. Where an allocator lacks an entry that the programs
 * use, free stands in for it: hazard 19 is the one that asks for entries. */
#include "serving.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INVALID = 78 };

void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);
size_t freestone_purge(void);

static bool same_file(const char *one, const char *other) {
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

void require_served(const char *symbol) {
    const char *file = getenv("HAZARD_FILE");
    Dl_info home = {0};
    void *address = dlsym(RTLD_DEFAULT, symbol);
    if (file == NULL || address == NULL || dladdr(address, &home) == 0 || !same_file(home.dli_fname, file)) {
        (void)dprintf(STDERR_FILENO, "%s is served by %s, not by %s\n", symbol,
                      home.dli_fname == NULL ? "nobody" : home.dli_fname, file == NULL ? "what nobody named" : file);
        _exit(INVALID);
    }
}

void require_serving(void) {
    static const char *const served[] = {"malloc", "calloc", "realloc", "free"};
    for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
        require_served(served[i]);
    }
}

void free_sized(void *block, size_t size) {
    void (*real)(void *, size_t) = (void (*)(void *, size_t))(uintptr_t)dlsym(RTLD_NEXT, "free_sized");
    if (real != NULL) {
        real(block, size);
    } else {
        free(block);
    }
}

void free_aligned_sized(void *block, size_t alignment, size_t size) {
    void (*real)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))(uintptr_t)dlsym(RTLD_NEXT, "free_aligned_sized");
    if (real != NULL) {
        real(block, alignment, size);
    } else {
        free(block);
    }
}

size_t freestone_purge(void) {
    size_t (*real)(void) = (size_t (*)(void))(uintptr_t)dlsym(RTLD_NEXT, "freestone_purge");
    return real != NULL ? real() : (size_t)malloc_trim(0);
}
