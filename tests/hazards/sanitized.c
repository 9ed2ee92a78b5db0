/* Works a little, and with a word makes the mistake that a sanitizer is there to find. What serves it is the sanitizer's malloc;
 * the allocator asked for has to be loaded beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID = 78 };

static int loaded(const char *file) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        found |= strstr(line, file) != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

int main(int count, char **words) {
    (void)words;
    const char *file = getenv("HAZARD_LOADED");
    if (file == NULL || !loaded(file)) {
        fprintf(stderr, "%s is not in the process\n", file == NULL ? "what nobody named" : file);
        return INVALID;
    }
    for (size_t i = 1; i < 5000; i++) {
        char *block = malloc(i);
        memset(block, 1, i);
        block = realloc(block, 2 * i);
        free(block);
    }
    char *volatile block = malloc(100);
    free(block);
    if (count > 1) {
        block[50] = 1;
    }
    return 0;
}
