/* What a library allocated stays valid after the library is unloaded, what the program allocated may be freed by a
 * library's destructor, and loading and unloading does not disturb the heap's own end-of-thread work. */
#include <dlfcn.h>
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"

enum { SIZE = 5000, ROUNDS = 50 };

static const char *guest_path;

static void *visit(void *unused) {
    (void)unused;
    for (size_t i = 0; i < ROUNDS; i++) {
        void *guest = dlopen(guest_path, RTLD_NOW);
        EXPECT(guest != NULL, "%s", dlerror());
        void *(*allocate)(size_t) = (void *(*)(size_t))(uintptr_t)dlsym(guest, "guest_allocate");
        void (*keep)(void *) = (void (*)(void *))(uintptr_t)dlsym(guest, "guest_keep");
        EXPECT(allocate != NULL && keep != NULL, "%s", dlerror());
        void *block = allocate(SIZE);
        EXPECT(block != NULL, "the library could not allocate");
        pattern_fill(block, 0, SIZE, i);
        keep(malloc(SIZE));
        EXPECT(dlclose(guest) == 0, "%s", dlerror());
        EXPECT(pattern_mismatch(block, SIZE, i) == SIZE_MAX, "a block changed when its library was unloaded");
        free(block);
        EXPECT(dlopen("/no/such/library.so", RTLD_NOW) == NULL, "a library that is not there was loaded");
        EXPECT(dlerror() != NULL, "no message"); /* libc allocates and keeps this one per thread */
    }
    return NULL;
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: unloaded_library GUEST");
    guest_path = arguments[1];
    visit(NULL);
    for (size_t i = 0; i < 4; i++) {
        pthread_t threads[2];
        EXPECT(pthread_create(&threads[0], NULL, visit, NULL) == 0, "no thread");
        EXPECT(pthread_create(&threads[1], NULL, visit, NULL) == 0, "no thread");
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    }
    return 0;
}
