/* For every program with a dynamic linker: ask it where the entry points lead. */
#include "serving.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "entry.h"
#include "expect.h"

static Dl_info home_of(const char *symbol, const void *address) {
    Dl_info home;
    EXPECT(address != NULL, "%s is nowhere to be found: libfreestone is not serving", symbol);
    EXPECT(dladdr(address, &home) != 0 && home.dli_fname != NULL, "%s lies in no loaded object", symbol);
    return home;
}

void require_served(const char *symbol) {
    (void)home_of("freestone_identity", freestone_identity);
    /* Its address only says that the library is there: an executable linked to it may hold a copy of the object. */
    Dl_info ours = home_of("freestone_version", (const void *)(uintptr_t)freestone_version);
    /* What a library loaded by this program would be bound to; in an executable that holds the archive, the
     * linker exports these because libc refers to them. */
    Dl_info home = home_of(symbol, dlsym(RTLD_DEFAULT, symbol));
    EXPECT(home.dli_fbase == ours.dli_fbase, "%s is served by %s, not by libfreestone in %s", symbol, home.dli_fname,
           ours.dli_fname);
}

void require_serving(void) {
    static const char *const served[] = {"malloc", "calloc", "realloc", "free"};
    for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
        require_served(served[i]);
    }
}
