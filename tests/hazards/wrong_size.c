/* Sized delete with a size that is not the block's: it is tolerated or reported, and corrupts nothing. */
#include "hazard.h"

#include <dlfcn.h>

enum { ROUNDS = 3000 };
static size_t real_size, told_size;
static void *(*operator_new)(size_t);
static void (*operator_delete)(void *, size_t);

/* The C++ library's own where the allocator has none: it calls malloc and free. */
static void *operator_of(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL) {
        void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
        EXPECT(library != NULL, "%s", dlerror());
        address = dlsym(library, name);
    }
    EXPECT(address != NULL, "%s", dlerror());
    return address;
}

static void delete_wrongly(void) {
    for (int i = 0; i < 50; i++) {
        operator_delete(unseen(operator_new(real_size)), told_size);
    }
    TABLE(block, ROUNDS);
    for (size_t round = 0; round < 2; round++) {
        size_t size = round == 0 ? real_size : told_size;
        for (size_t i = 0; i < ROUNDS / 10; i++) {
            block[i] = malloc(size);
            EXPECT(block[i] != NULL, "malloc failed");
            pattern_fill(block[i], 0, size, i);
        }
        for (size_t i = 0; i < ROUNDS / 10; i++) {
            EXPECT(pattern_mismatch(block[i], size, i) == SIZE_MAX, "%zu deleted as %zu: blocks overlap", real_size,
                   told_size);
            free(block[i]);
        }
    }
}

int main(void) {
    require_serving();
    operator_new = (void *(*)(size_t))(uintptr_t)operator_of("_Znwm");
    operator_delete = (void (*)(void *, size_t))(uintptr_t)operator_of("_ZdlPvm");
    static const size_t sizes[][2] = {{24, 4000}, {4000, 24}, {100, 100000}, {100000, 100}, {64, 65}, {2 << 20, 64}};
    int stopped = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        real_size = sizes[i][0];
        told_size = sizes[i][1];
        int ends[2];
        EXPECT(pipe(ends) == 0, "no pipe");
        pid_t process = fork();
        if (process == 0) {
            dup2(ends[1], STDERR_FILENO);
            alarm(20);
            delete_wrongly();
            _exit(0);
        }
        close(ends[1]);
        char said[300];
        ssize_t length = read(ends[0], said, sizeof said - 1);
        said[length < 0 ? 0 : length] = '\0';
        close(ends[0]);
        int status = 0;
        waitpid(process, &status, 0);
        EXPECT(!WIFEXITED(status) || status == 0, "%s", said);
        EXPECT(status == 0 || length > 8, "%zu deleted as %zu: %s, no message", real_size, told_size,
               strsignal(WTERMSIG(status)));
        stopped += status != 0;
    }
    printf("%d of 6 reported, the others tolerated\n", stopped);
    return 0;
}
