/* A program lives at its limit of address space, as caches do that evict when malloc returns NULL: to be refused costs it little, however often it
 * asks, and when it has freed a third it goes on. Told by how often it sleeps: it once did for a millisecond at each.
 *
 *   full_limit      the limit is in force already */
#include <errno.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { REFUSED = 3000, AFTERWARDS = 20000, BLOCKS_MOST = 1 << 20 };

static void *block[BLOCKS_MOST];

static long sleeps(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0, "errno %d", errno);
    return usage.ru_nvcsw;
}

int main(void) {
    require_serving();
    size_t blocks = 0;
    while (blocks < BLOCKS_MOST && (block[blocks] = unseen(malloc(16 + blocks * 7919 % 3000))) != NULL) {
        blocks++;
    }
    EXPECT(blocks > 1000 && blocks < BLOCKS_MOST, "%zu blocks were had", blocks);
    long before = sleeps();
    for (size_t i = 0; i < REFUSED; i++) {
        EXPECT(unseen(malloc(5000)) == NULL && errno == ENOMEM, "the limit was reached, and 5000 bytes are had");
    }
    EXPECT(sleeps() - before < REFUSED / 10, "%d requests are refused, in %ld sleeps", REFUSED, sleeps() - before);
    size_t freed = 0, had = 0;
    for (size_t i = 0; i < blocks; i += 3, freed++) {
        free(block[i]);
        block[i] = NULL;
    }
    for (size_t i = 0; i < AFTERWARDS; i++) {
        had += unseen(malloc(3000 + i % 3 * 900)) != NULL;
    }
    EXPECT(had > 0, "a third of %zu blocks was freed, and nothing is had", blocks);
    return 0;
}
