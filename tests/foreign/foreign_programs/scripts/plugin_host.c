/* Opens a plugin as the second argument says, calls it from four threads that allocate too, closes it and opens it again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t (*work)(unsigned turns);

static void *run(void *sum) {
    char *own = malloc(5000);
    *(uint64_t *)sum = work(20000);
    free(own);
    return NULL;
}

int main(int count, char **words) {
    if (count != 3) {
        return 2;
    }
    int flags = RTLD_NOW | (strcmp(words[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL);
    flags |= strcmp(words[2], "deepbind") == 0 ? RTLD_DEEPBIND : 0;
    for (int turn = 0; turn < 3; turn++) {
        void *plugin = dlopen(words[1], flags);
        if (plugin == NULL) {
            puts(dlerror());
            return 3;
        }
        *(void **)&work = dlsym(plugin, "plugin_work");
        pthread_t threads[4];
        uint64_t sums[4];
        for (int i = 0; i < 4; i++) {
            if (pthread_create(&threads[i], NULL, run, &sums[i]) != 0) {
                return 4;
            }
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
        printf("%016llx ", (unsigned long long)(sums[0] ^ sums[1] ^ sums[2] + sums[3]));
        dlclose(plugin);
    }
    return 0;
}
