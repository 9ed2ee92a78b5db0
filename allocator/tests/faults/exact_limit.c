/* Address space has room for a block that is a mapping of its own, and for little more: not for what it takes to align it to a huge page. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { ANOTHER = 400000, SIZE = 200000000, SLACK = 64 << 10 };

static size_t address_space(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file != NULL && fscanf(file, "%zu", &pages) == 1, "/proc/self/statm cannot be read");
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

int main(void) {
    require_serving();
    EXPECT(unseen(malloc(ANOTHER)) != NULL, "no block"); /* the heap is there */
    struct rlimit limit = {address_space() + SIZE + SLACK, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
    char *block = unseen(malloc(SIZE));
    EXPECT(block != NULL, "no %d bytes where there is room for %d more", SIZE, SLACK);
    memset(block, 1, SIZE);
    free(block);
    return 0;
}
