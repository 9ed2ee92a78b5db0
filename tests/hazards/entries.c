/* Every entry of the heap interface of glibc, C11, C23, POSIX and C++17 leads to one heap: none that the allocator leaves out is
 * libc's own, whose blocks it would not know. Entries that nobody has are counted only. */
#include "hazard.h"

#include <dlfcn.h>
#include <sys/stat.h>

static const char *const entries[] = {
    "malloc",         "calloc",
    "realloc",        "reallocarray",
    "free",           "aligned_alloc",
    "posix_memalign", "memalign",
    "valloc",         "pvalloc",
    "cfree",          "malloc_usable_size",
    "free_sized",     "free_aligned_sized",
};

int main(void) {
    require_serving();
    char missing[256] = "", others[256] = "";
    const char *file = getenv("HAZARD_FILE");
    struct stat ours, theirs;
    EXPECT(file != NULL && stat(file, &ours) == 0, "no library");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        Dl_info home;
        /* RTLD_NEXT: this program has a free_sized of its own, for where there is none. */
        void *address = dlsym(RTLD_NEXT, entries[i]);
        char *list = address == NULL ? missing : others;
        bool own = address != NULL && dladdr(address, &home) != 0 && stat(home.dli_fname, &theirs) == 0 &&
                   theirs.st_ino == ours.st_ino;
        if (!own) {
            strncat(strncat(list, " ", 255 - strlen(list)), entries[i], 254 - strlen(list));
        }
    }
    EXPECT(others[0] == '\0', "libc's own:%s", others);
    printf("%s%s\n", missing[0] == '\0' ? "all" : "nobody's:", missing);
    return 0;
}
