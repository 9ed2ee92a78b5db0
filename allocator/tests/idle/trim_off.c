/* mallopt(M_TRIM_THRESHOLD, -1): memory that was touched once stays, as a program counts on that may not wait for the kernel. Taken back, it goes
 * to the kernel as before. */
#include <malloc.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"
#include "tasks.h"

enum { BLOCKS = 400, SIZE = 200000, REST_MS = 2500, FAULTS_MOST = 2000, RESIDENT_KIB_MOST = 40 << 10 };

static long swing(void) {
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    static char *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(SIZE);
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], 1, SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
}

int main(void) {
    require_serving();
    EXPECT(mallopt(M_TRIM_THRESHOLD, -1) == 1, "mallopt refused");
    (void)swing();
    for (int round = 0; round < 2; round++) {
        tasks_sleep(REST_MS);
        long faults = swing();
        EXPECT(faults < FAULTS_MOST, "%ld faults in round %d", faults, round);
    }
    EXPECT(mallopt(M_TRIM_THRESHOLD, 128 << 20) == 1, "mallopt refused");
    (void)swing();
    long waited = 0;
    while (resident_kib() > RESIDENT_KIB_MOST && waited < IDLE_MS) {
        tasks_sleep(100);
        waited += 100;
    }
    EXPECT(resident_kib() <= RESIDENT_KIB_MOST, "%zu KiB are still resident", resident_kib());
    return 0;
}
