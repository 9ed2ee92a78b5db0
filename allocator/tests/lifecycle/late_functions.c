/* A program may have a function of libc's, and forward by a pointer that its constructor sets: nobody calls it before. The library, whose first blocks are
 * allocated earlier still, goes by libc's own functions (direct_binding.h).
 *
 *   late_functions   ends with 0 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

/* Calls of one of them before its pointer is set end here. */
static void is_early(const char *name) {
    const char *const parts[] = {name, " is called before the program's constructors\n"};
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
        size_t bytes = 0;
        while (parts[part][bytes] != '\0') {
            bytes++;
        }
        (void)!write(STDERR_FILENO, parts[part], bytes);
    }
    _exit(1);
}

#define LATE(type, name, types, parameters, ...) \
    static type(*next_##name) types;             \
    type name parameters;                        \
    type name parameters {                       \
        if (next_##name == NULL) {               \
            is_early(#name);                     \
        }                                        \
        return next_##name(__VA_ARGS__);         \
    }

typedef void handler(void);
typedef int each_object(struct dl_phdr_info *, size_t, void *);

LATE(int, dl_iterate_phdr, (each_object *, void *), (each_object * each, void *argument), each, argument)
LATE(int, pthread_key_create, (pthread_key_t *, void (*)(void *)), (pthread_key_t * key, void (*ending)(void *)), key,
     ending)
int set_specific(pthread_key_t, const void *) __asm__("pthread_setspecific"); /* whose argument need not be set */
LATE(int, set_specific, (pthread_key_t, const void *), (pthread_key_t key, const void *value), key, value)
LATE(int, pthread_setcancelstate, (int, int *), (int state, int *before), state, before)
LATE(char *, secure_getenv, (const char *), (const char *name), name)
#ifdef __GLIBC__
LATE(int, __register_atfork, (handler *, handler *, handler *, void *),
     (handler * before, handler *parent, handler *child, void *object), before, parent, child, object)
int find_object(void *address, void *found) __asm__("_dl_find_object"); /* dlfcn.h may have another type for it */
LATE(int, find_object, (void *, void *), (void *address, void *found), address, found)
LATE(void *, dlsym, (void *, const char *), (void *handle, const char *name), handle, name)
#else
LATE(int, pthread_atfork, (handler *, handler *, handler *), (handler * before, handler *parent, handler *child),
     before, parent, child)
#endif
LATE(int, sigaction, (int, const struct sigaction *, struct sigaction *),
     (int number, const struct sigaction *action, struct sigaction *before), number, action, before)

static void *libc_dlsym(void *handle, const char *name) {
#ifdef __GLIBC__
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.27"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions && next_dlsym == NULL; i++) {
        *(void **)&next_dlsym = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    }
    return next_dlsym(handle, name);
#else
    return dlsym(handle, name);
#endif
}

#define FIND(name) *(void **)&next_##name = libc_dlsym(RTLD_NEXT, #name)

__attribute__((constructor(65535))) static void find(void) {
    free(malloc(100));
    FIND(dl_iterate_phdr);
    FIND(pthread_key_create);
    *(void **)&next_set_specific = libc_dlsym(RTLD_NEXT, "pthread_setspecific");
    FIND(pthread_setcancelstate);
    FIND(secure_getenv);
#ifdef __GLIBC__
    FIND(__register_atfork);
    *(void **)&next_find_object = libc_dlsym(RTLD_NEXT, "_dl_find_object");
#else
    FIND(pthread_atfork);
#endif
    FIND(sigaction);
}

/* Before any constructor, of the library's too. */
static void allocate_first(void) {
    char *volatile block = malloc(100);
    block = realloc(block, 200);
    free(block);
    free(calloc(3, 5));
}

#ifdef __GLIBC__
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = allocate_first;
#else
__attribute__((constructor(101))) static void first(void) { allocate_first(); }
#endif

static void *work(void *argument) {
    for (size_t bytes = 1; bytes < 3000000; bytes *= 3) {
        char *block = calloc(1, bytes);
        EXPECT(block != NULL, "calloc(%zu)", bytes);
        block = realloc(block, 2 * bytes);
        EXPECT(block != NULL, "realloc(%zu)", 2 * bytes);
        free(block);
    }
    return argument;
}

int main(void) {
    require_serving();
    (void)work(NULL);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
    EXPECT(pthread_join(thread, NULL) == 0, "no thread to join");
    pid_t child = fork();
    EXPECT(child >= 0, "no child");
    if (child == 0) {
        (void)work(NULL);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with %#x", (unsigned)status);
    return 0;
}
