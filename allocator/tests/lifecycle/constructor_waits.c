/* constructor_waits LIBRARY: loads a library whose constructor waits for a thread that changes who it is, names itself, makes a system
 * call and sets handlers of a signal. A function of ours that then looked for libc's would wait for the dynamic linker, and the linker for it. */
#include <dlfcn.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { PATIENCE_SECONDS = 20 };

int main(int count, char **arguments) {
    require_serving();
    free(unseen(malloc(100)));
    EXPECT(count == 2, "usage: constructor_waits LIBRARY");
    alarm(PATIENCE_SECONDS); /* who waits for each other waits for ever */
    void *library = dlopen(arguments[1], RTLD_NOW);
    EXPECT(library != NULL, "%s", dlerror());
    int (*done)(void) = (int (*)(void))dlsym(library, "waiting_library_done");
    EXPECT(done != NULL && done() == 1, "the constructor was not run to its end");
    return 0;
}
