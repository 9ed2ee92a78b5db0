/* Says which libfreestone serves it: its version, whether its figures follow a malloc, and each file of that name that is mapped. */
#include <freestone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 32 << 20 };

static void print_mapped(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    char last[4096] = "";
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        const char *file = strchr(line, '/');
        if (file != NULL && strstr(file, "libfreestone") != NULL && strcmp(file, last) != 0) {
            printf("mapped %s", file);
            strcpy(last, file);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

int main(void) {
    struct freestone_stats before;
    struct freestone_stats after;
    freestone_stats_read(&before);
    void *volatile block = malloc(BLOCK_BYTES);
    freestone_stats_read(&after);
    free(block);
    printf("version %s\n", freestone_version());
    printf("serves %s\n", after.in_use - before.in_use >= BLOCK_BYTES ? "yes" : "no");
    print_mapped();
    return 0;
}
