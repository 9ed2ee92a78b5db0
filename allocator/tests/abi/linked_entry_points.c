/* Every entry point a program names is resolved by the linker to libfreestone, shared or in the executable, and none
 * to libc, whose blocks our free would refuse. */
#include <dlfcn.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

struct entry {
    const char *name;
    const void *address;
};

#define ENTRY(name) {#name, (const void *)(uintptr_t)name}

int main(void) {
    require_serving();
    const struct entry entries[] = {
        ENTRY(malloc),
        ENTRY(calloc),
        ENTRY(realloc),
        ENTRY(reallocarray),
        ENTRY(free),
        ENTRY(free_sized),
        ENTRY(free_aligned_sized),
        ENTRY(aligned_alloc),
        ENTRY(memalign),
        ENTRY(posix_memalign),
        ENTRY(valloc),
        ENTRY(pvalloc),
        ENTRY(malloc_usable_size),
        ENTRY(malloc_trim),
        ENTRY(mallopt),
        ENTRY(mallinfo2),
        ENTRY(malloc_info),
        ENTRY(malloc_stats),
    };
    Dl_info ours;
    EXPECT(dladdr((void *)(uintptr_t)freestone_version, &ours) != 0, "freestone_version lies in no loaded object");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        Dl_info home;
        EXPECT(dladdr(entries[i].address, &home) != 0, "%s lies in no loaded object", entries[i].name);
        EXPECT(home.dli_fbase == ours.dli_fbase, "%s comes from %s, not from %s", entries[i].name, home.dli_fname,
               ours.dli_fname);
    }
    return 0;
}
