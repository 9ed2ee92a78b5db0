/* What a process has used when it ends, and whether anybody is told. */
#ifndef FREESTONE_WITNESS_SPENT_H
#define FREESTONE_WITNESS_SPENT_H

#include "report.h"

/* Lines `spent` and `waited` (processor time in the program and in the kernel in ns, minor and major faults, largest
 * resident set in KiB; of this process, and of all it has waited for) and `ends`. */
void spent_report(struct report *report);

#endif
