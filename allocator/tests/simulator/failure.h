/* How a run ends that shows a defect: with one line, which the process that started it reads. */
#ifndef FREESTONE_SIMULATOR_FAILURE_H
#define FREESTONE_SIMULATOR_FAILURE_H

#include <stdint.h>

/* Shared by the process that looks on, the one that plays, and the children it forks. */
struct outcome {
    char text[512]; /* "kind: what"; empty when all was well */
    uint32_t step;  /* that was played last */
    uint64_t steps, yields, audits, forks, calls, refusals;
};
extern struct outcome *outcome;

/* Ends the run. Up to the colon it names the kind, by which failures are told apart. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The simulator itself is at fault, or the machine. */
#define EXPECT_HERE(condition) \
    ((condition) ? (void)0 : fail("simulator: %s, line %d: %s", __FILE__, __LINE__, #condition))

#endif
