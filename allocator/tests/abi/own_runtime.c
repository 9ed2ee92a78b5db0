/* A program of C loads a plugin of C++; memory is out.
 *
 *   own_runtime PLUGIN [LIBRARY]      after that library */
#include <dlfcn.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

int main(int count, char **arguments) {
    require_serving();
    alarm(20); /* a plugin may wait, while it is loaded, for a thread to whom memory is refused */
    EXPECT(count == 2 || count == 3, "usage: own_runtime PLUGIN [LIBRARY]");
    EXPECT(count == 2 || dlopen(arguments[2], RTLD_NOW) != NULL, "%s", dlerror());
    void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(plugin != NULL, "%s", dlerror());
    int (*run)(size_t) = (int (*)(size_t))(uintptr_t)dlsym(plugin, "own_runtime_plugin");
    EXPECT(run != NULL, "%s", dlerror());
    int wrong = run(unseen_size(PTRDIFF_MAX & ~(size_t)127));
    EXPECT(wrong == 0, "the plugin's step %d", wrong);
    return 0;
}
