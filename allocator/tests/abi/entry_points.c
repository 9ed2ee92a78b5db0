/* Every entry point of the heap interface, looked up by name as a library loaded later would, is ours: one left to
 * libc hands out blocks that our free refuses. For the flavours where the dynamic linker does the binding. */
#include <dlfcn.h>
#include <stdbool.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

static const char *const entries[] = {
    /* C11, C23, POSIX, GNU */
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "free_sized",
    "free_aligned_sized",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "malloc_trim",
    "mallopt",
    "mallinfo",
    "mallinfo2",
    "malloc_info",
    "malloc_stats",
    /* operator new: plain, array; with nothrow, alignment, both */
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    /* operator delete: plain, array; with size, nothrow, alignment, and what of them goes together */
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};

/* Names some libcs have besides. glibc's own cfree went in 2.26 and its __libc_* are private to it; where a program
 * can reach one at all, it has to reach ours. */
static const char *const entries_if_present[] = {"cfree"};

static const void *home_of(const char *name, bool required) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL) {
        EXPECT(!required, "%s is not defined anywhere", name);
        return NULL;
    }
    Dl_info home;
    EXPECT(dladdr(address, &home) != 0, "%s lies in no loaded object", name);
    return home.dli_fbase;
}

int main(void) {
    require_serving();
    Dl_info ours;
    EXPECT(dladdr((void *)(uintptr_t)freestone_version, &ours) != 0, "freestone_version lies in no loaded object");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        EXPECT(home_of(entries[i], true) == ours.dli_fbase, "%s is not served by %s", entries[i], ours.dli_fname);
    }
    for (size_t i = 0; i < sizeof entries_if_present / sizeof *entries_if_present; i++) {
        const void *home = home_of(entries_if_present[i], false);
        EXPECT(home == NULL || home == ours.dli_fbase, "%s is not served by %s", entries_if_present[i], ours.dli_fname);
    }
    return 0;
}
