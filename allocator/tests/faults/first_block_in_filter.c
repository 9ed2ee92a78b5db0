/* A program whose first block comes after it has put itself under a filter for which an opened file is death, and so is a look at one. */
#include <sys/syscall.h>

#include "entry.h"
#include "expect.h"
#include "filter.h"
#include "serving.h"

enum { BLOCKS = 1000 };

static const long deadly[] = {
    SYS_openat,
#ifdef SYS_open
    SYS_open,
#endif
    SYS_read,
    SYS_close,
};

static const struct filter filter = {deadly, sizeof deadly / sizeof *deadly, false, FILTER_KILLS};

int main(void) {
    static void *blocks[BLOCKS];
    filter_enter(&filter, false);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = unseen(malloc(1 + i * i / 10));
        EXPECT(blocks[i] != NULL, "malloc failed");
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    require_serving();
    _exit(0);
}
