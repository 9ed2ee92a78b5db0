/* A plugin, loaded for itself alone as scripting languages load theirs, generates code, registers its frames with the unwinder
 * that it was linked with, and throws through it.
 *
 *   generated_code PLUGIN */
#include <dlfcn.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: generated_code PLUGIN");
    void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(plugin != NULL, "%s", dlerror());
    int (*run)(void) = (int (*)(void))(uintptr_t)dlsym(plugin, "generated_code_plugin");
    EXPECT(run != NULL, "%s", dlerror());
    for (int turn = 0; turn < 3; turn++) {
        EXPECT(run() == 1, "the exception did not come through");
    }
    return 0;
}
