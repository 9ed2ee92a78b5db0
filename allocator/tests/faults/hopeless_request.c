/* A request that nobody could serve costs nobody his memory: what is free stays free to be used again, and a block that cannot grow so far is not
 * copied to and fro. */
#include <errno.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { BLOCKS = 400, SIZE = 200000, FAULTS_MOST = 2000, GROWING = 64 << 20 };

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void swing(void) {
    static char *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(SIZE);
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], 1, SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
}

int main(void) {
    require_serving();
    size_t hopeless = unseen_size((size_t)1 << 50);
    swing();
    swing();
    long before = faults();
    errno = 0;
    EXPECT(unseen(malloc(hopeless)) == NULL && errno == ENOMEM, "a pebibyte, errno %d", errno);
    swing();
    EXPECT(faults() - before < FAULTS_MOST, "%ld faults after a refusal", faults() - before);
    char *growing = unseen(malloc(GROWING));
    EXPECT(growing != NULL, "no memory");
    memset(growing, 7, GROWING);
    before = faults();
    EXPECT(unseen(realloc(growing, hopeless)) == NULL && errno == ENOMEM, "a pebibyte, errno %d", errno);
    EXPECT(growing[0] == 7 && growing[GROWING - 1] == 7, "the block has changed");
    EXPECT(faults() - before < FAULTS_MOST, "%ld faults in a realloc that was refused", faults() - before);
    free(growing);
    return 0;
}
