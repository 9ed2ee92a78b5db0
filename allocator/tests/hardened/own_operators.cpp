// A plugin with a C++ runtime of its own, whose operators are hidden, makes what the program deletes, and deletes what the program makes: that is
// no mismatch, though its new is malloc for the library.
//
//   own_operators PLUGIN
#include <dlfcn.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: own_operators PLUGIN");
    void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(plugin != nullptr, "%s", dlerror());
    auto make = reinterpret_cast<int *(*)()>(dlsym(plugin, "own_operators_make"));
    auto unmake = reinterpret_cast<void (*)(int *)>(dlsym(plugin, "own_operators_unmake"));
    EXPECT(make != nullptr && unmake != nullptr, "%s", dlerror());
    for (int turn = 0; turn < 100; turn++) {
        delete make();
        unmake(new int(turn));
    }
    return 0;
}
