/* A gate in front of system calls: a filter in the kernel stops the chosen ones, and a function of the test decides
 * for each whether it goes through or fails, and with what. Nothing of the allocator is replaced or intercepted, so
 * it does not matter by which function it calls the kernel. */
#ifndef FREESTONE_TESTS_GATE_H
#define FREESTONE_TESTS_GATE_H

#include <stdbool.h>
#include <stddef.h>

/* 0 lets the call through; an errno value makes it fail with that. Runs in a signal handler, in any thread. */
typedef int gate_decision(long number, const long arguments[6]);

/* Closes the gate on the calls of `numbers` (or, with `all_others`, on every call but these) in every thread of the
 * process and in those yet to come. Skips the program where the kernel or the processor does not allow that.
 *
 * A call stopped while its thread blocks SIGSYS ends the process: threads must neither begin nor end behind a gate
 * that stops the mmap family. */
void gate_close(const long *numbers, size_t count, bool all_others, gate_decision *decide);

#endif
