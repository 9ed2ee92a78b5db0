/* loaded_late LIBRARY: the library comes by dlopen, beside libc's malloc, grows, is emptied, is closed while its keeper
 * lives, and its memory still goes back. */
#include <dlfcn.h>

#include "field.h"

static void *(*take)(size_t);
static void (*give)(void *);

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: loaded_late LIBRARY");
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != NULL, "%s", dlerror());
    *(void **)&take = dlsym(library, "malloc");
    *(void **)&give = dlsym(library, "free");
    EXPECT(take != NULL && give != NULL && take != malloc, "the library has no malloc of its own");
    size_t before = resident_kib();
    for (size_t i = 0; i < FIELD_MOST; i++) {
        field.block[i] = take(160);
        EXPECT(field.block[i] != NULL, "malloc failed");
        pattern_fill(field.block[i], 0, 160, i);
    }
    size_t full = resident_kib();
    for (size_t i = 0; i < FIELD_MOST; i++) {
        if (i % 200 != 0) {
            give(field.block[i]);
            field.block[i] = NULL;
        }
    }
    EXPECT(tasks_await_keeper(true, 2000), "nobody came to return %zu KiB", full - before);
    EXPECT(dlclose(library) == 0, "%s", dlerror());
    field_await_return(before + (size_t)FIELD_MOST * sizeof(void *) / 1024, full, 70);
    field.count = FIELD_MOST;
    field.size = 160;
    field_check("after idling");
    EXPECT(tasks_await_keeper(false, IDLE_MS), "the keeper does not end");
    return 0;
}
