/* A megabyte, touched and freed, again and again: not all its pages each time. After 32 of them at once, all but a little goes
 * back. */
#include "hazard.h"

#include <sys/resource.h>

enum { ROUNDS = 1000, WARM = 100, FAULTS_MOST = 20, SIZE = 1 << 20, AT_ONCE = 32, LEFT_MOST_KIB = 4096 };

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

int main(void) {
    require_serving();
    size_t before = resident_kib();
    long start = 0;
    for (int i = 0; i < WARM + ROUNDS; i++) {
        start = i == WARM ? faults() : start;
        free(touched(SIZE));
    }
    double each = (double)(faults() - start) / ROUNDS;
    EXPECT(each < FAULTS_MOST, "%.1f faults for each block of 1 MiB", each);
    TABLE(block, AT_ONCE);
    for (size_t i = 0; i < AT_ONCE; i++) {
        block[i] = touched(SIZE);
    }
    for (size_t i = 0; i < AT_ONCE; i++) {
        free(block[i]);
    }
    size_t left = resident_after_rest(before + LEFT_MOST_KIB);
    EXPECT(left <= before + LEFT_MOST_KIB, "%zu KiB more than before, after %d s", left - before, RETURNED_S);
    printf("%.1f faults for each block of 1 MiB; %zd KiB more than before\n", each, (ssize_t)left - (ssize_t)before);
    return 0;
}
