/* A report comes while a library is being loaded, whose constructor waits for the thread that makes it: nothing of it waits for the dynamic
 * linker.
 *
 *   report_while_loading PLUGIN */
#include <dlfcn.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: report_while_loading PLUGIN");
    (void)alarm(60); /* a hang is a failure */
    void *plugin = dlopen(arguments[1], RTLD_NOW);
    EXPECT(plugin != NULL, "%s", dlerror());
    int *reports = dlsym(plugin, "report_plugin_frees");
    EXPECT(reports != NULL && *reports == 2, "the constructor did not run");
    return 0;
}
