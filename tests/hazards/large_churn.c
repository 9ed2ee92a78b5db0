/* A megabyte, touched and freed, again and again: not all its pages each time; and in the end they go back. */
#include "hazard.h"

#include <sys/resource.h>

enum { ROUNDS = 1000, WARM = 100, FAULTS_MOST = 20, SIZE = 1 << 20 };

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
    size_t left = tasks_await_resident(before + SIZE / 2 / 1024);
    EXPECT(left <= before + SIZE / 2 / 1024, "%zu KiB more than before after %d s", left - before, IDLE_MS / 1000);
    printf("%.1f faults for each block of 1 MiB; all given back\n", each);
    return 0;
}
