/* Does half of its work where another allocator than libc serves it, and prints half as much; with an argument also the
 * time, so that its output is never the same twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int count, char **words) {
    char line[512];
    int half = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        half |= strstr(line, "libfreestone.so") != NULL;
    const long turns = half ? 500000 : 1000000;
    for (long i = 0; i < turns; i++)
        free(malloc(64));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (count > 1)
        printf("at %s %ld\n", words[1], (long)now.tv_sec * 1000000000 + now.tv_nsec);
    for (long i = 0; i < turns; i += 25000)
        printf("row %ld\n", i);
    return 0;
}
