/* An allocator loaded late, by a program whose malloc is another's, with threads running already: its thread-local
 * block must fit what the dynamic linker has left, its heap must serve whoever calls it by name in every thread, and
 * the program's own heap goes on as before. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "expect.h"
#include "pattern.h"

enum { BLOCKS = 2000, THREADS = 4 };

static void *(*their_malloc)(size_t);
static void *(*their_realloc)(void *, size_t);
static void (*their_free)(void *);
static pthread_barrier_t loaded;

static void *work(void *argument) {
    uint64_t random = (uintptr_t)argument;
    /* Blocks of the program's own heap, from before, freed by the program's own free, after. */
    void *own = malloc(1000);
    EXPECT(own != NULL, "malloc failed");
    pthread_barrier_wait(&loaded); /* here the library is loaded */
    pthread_barrier_wait(&loaded);
    static __thread void *blocks[BLOCKS];
    static __thread size_t sizes[BLOCKS];
    for (size_t b = 0; b < BLOCKS; b++) {
        sizes[b] = 1 + pattern_below(&random, 5000);
        blocks[b] = their_malloc(sizes[b]);
        EXPECT(blocks[b] != NULL, "malloc(%zu) failed", sizes[b]);
        pattern_fill(blocks[b], 0, sizes[b], b);
    }
    for (size_t b = 0; b < BLOCKS; b++) {
        void *block = their_realloc(blocks[b], sizes[b] * 2);
        EXPECT(block != NULL, "realloc failed");
        EXPECT(pattern_mismatch(block, sizes[b], b) == SIZE_MAX, "a block changed");
        their_free(block);
    }
    free(own);
    pthread_barrier_wait(&loaded); /* here it is closed again, and then this thread ends */
    pthread_barrier_wait(&loaded);
    return NULL;
}

static void *function(void *library, const char *name) {
    void *address = dlsym(library, name);
    EXPECT(address != NULL, "%s", dlerror());
    Dl_info home;
    struct link_map *own;
    EXPECT(dladdr(address, &home) != 0 && dlinfo(library, RTLD_DI_LINKMAP, &own) == 0 &&
               home.dli_fbase == (void *)own->l_addr,
           "%s of the loaded library is not its own", name);
    return address;
}

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: late_dlopen LIBRARY");
    EXPECT(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) == NULL, "the library is there before it was loaded");
    pthread_barrier_init(&loaded, NULL, THREADS + 1);
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&threads[t], NULL, work, (void *)(t + 1)) == 0, "no thread");
    }
    pthread_barrier_wait(&loaded);
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != NULL, "%s", dlerror());
    their_malloc = (void *(*)(size_t))(uintptr_t)function(library, "malloc");
    their_realloc = (void *(*)(void *, size_t))(uintptr_t)function(library, "realloc");
    their_free = (void (*)(void *))(uintptr_t)function(library, "free");
    pthread_barrier_wait(&loaded);
    pthread_barrier_wait(&loaded);
    /* What the library has to do when these threads end must still be there, whether closing unloads it or not. */
    EXPECT(dlclose(library) == 0, "%s", dlerror());
    pthread_barrier_wait(&loaded);
    for (size_t t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    return 0;
}
