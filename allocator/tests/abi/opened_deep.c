/* A library opened with RTLD_DEEPBIND, whose blocks the program frees, and the program's it. One that is opened without a path is looked for
 * where the caller's own RUNPATH leads.
 *
 *   opened_deep PLUGIN dropped|kept      kept (deepbind=1): the plugin takes malloc from libc */
#include <dlfcn.h>
#include <stdbool.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 3, "usage: opened_deep PLUGIN dropped|kept");
    bool kept = strcmp(arguments[2], "kept") == 0;
    void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    EXPECT(plugin != NULL, "%s", dlerror());
    void *(*give)(void) = (void *(*)(void))(uintptr_t)dlsym(plugin, "opened_deep_give");
    void (*take)(void *) = (void (*)(void *))(uintptr_t)dlsym(plugin, "opened_deep_take");
    void *(*reached)(void) = (void *(*)(void))(uintptr_t)dlsym(plugin, "opened_deep_malloc");
    const char *(*beside)(void) = (const char *(*)(void))(uintptr_t)dlsym(plugin, "opened_deep_beside");
    EXPECT(give != NULL && take != NULL && reached != NULL && beside != NULL, "%s", dlerror());
    EXPECT((reached() == dlsym(RTLD_DEFAULT, "malloc")) == !kept, "the plugin reaches %p", reached());
    if (!kept) {
        free(unseen(give()));
        take(unseen(malloc(100)));
    }
    const char *failure = beside();
    EXPECT(failure == NULL, "%s", failure);
    return 0;
}
