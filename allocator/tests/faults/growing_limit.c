/* Address space is limited, and one block grows by realloc, step by step, as a buffer does that is read into: nearly up to the limit, though
 * there is no room for a second one of its size, and the address space of the first has to be given back for that.
 *
 *   growing_limit FROM-MIB TO-MIB      the limit is in force already */
#include <errno.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { MIB = 1 << 20, STEP_MIB = 10 };

int main(int count, char **arguments) {
    EXPECT(count == 3, "usage: growing_limit FROM-MIB TO-MIB");
    require_serving();
    size_t from = strtoul(arguments[1], NULL, 10) * MIB, to = strtoul(arguments[2], NULL, 10) * MIB;
    unsigned char *block = unseen(malloc(from));
    EXPECT(block != NULL, "malloc(%zu) failed", from);
    memset(block, 7, from);
    for (size_t size = from + STEP_MIB * MIB; size <= to; size += STEP_MIB * MIB) {
        errno = EXDEV; /* no error of the heap's */
        unsigned char *grown = unseen(realloc(block, size));
        EXPECT(grown != NULL, "realloc to %zu MiB failed", size / MIB);
        EXPECT(errno == EXDEV, "realloc to %zu MiB sets errno to %d", size / MIB, errno);
        block = grown;
        EXPECT(block[0] == 7 && block[from / 2] == 7 && block[from - 1] == 7, "realloc to %zu MiB lost bytes",
               size / MIB);
        block[size - 1] = 1;
    }
    errno = 0;
    EXPECT(unseen(realloc(block, 4 * to)) == NULL && errno == ENOMEM, "realloc to four times as much: errno %d", errno);
    EXPECT(block[0] == 7 && block[from - 1] == 7, "a realloc that failed lost bytes");
    free(block);
    return 0;
}
