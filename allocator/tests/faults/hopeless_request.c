/* A request that nobody could serve costs nobody his memory: what is free stays free to be used again, and a block that cannot grow so far is not
 * copied to and fro. */
#include <errno.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"
#include "swing.h"

enum { BLOCKS = 400, SIZE = 200000, FAULTS_MOST = 2000, GROWING = 64 << 20 };

int main(void) {
    require_serving();
    size_t hopeless = unseen_size((size_t)1 << 50);
    swing(BLOCKS, SIZE);
    swing(BLOCKS, SIZE);
    long before = minor_faults();
    errno = 0;
    EXPECT(unseen(malloc(hopeless)) == NULL && errno == ENOMEM, "a pebibyte, errno %d", errno);
    void *untouched = &hopeless;
    errno = 0;
    EXPECT(posix_memalign(&untouched, 64, hopeless) == ENOMEM && errno == ENOMEM && untouched == &hopeless,
           "posix_memalign of a pebibyte: errno %d", errno);
    swing(BLOCKS, SIZE);
    EXPECT(minor_faults() - before < FAULTS_MOST, "%ld faults after a refusal", minor_faults() - before);
    char *growing = unseen(malloc(GROWING));
    EXPECT(growing != NULL, "no memory");
    memset(growing, 7, GROWING);
    before = minor_faults();
    EXPECT(unseen(realloc(growing, hopeless)) == NULL && errno == ENOMEM, "a pebibyte, errno %d", errno);
    EXPECT(growing[0] == 7 && growing[GROWING - 1] == 7, "the block has changed");
    EXPECT(minor_faults() - before < FAULTS_MOST, "%ld faults in a realloc that was refused", minor_faults() - before);
    /* Less than half of it is no more wanted: that is given back, though it would do. */
    char *shrunk = realloc(growing, GROWING / 8 * 5);
    EXPECT(shrunk != NULL && malloc_usable_size(shrunk) < GROWING / 8 * 5 + SIZE, "%zu bytes stay of %d",
           malloc_usable_size(shrunk), GROWING / 8 * 5);
    free(shrunk);
    return 0;
}
