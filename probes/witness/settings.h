/* The variables that steer an allocator, as a program image has found them. */
#ifndef FREESTONE_WITNESS_SETTINGS_H
#define FREESTONE_WITNESS_SETTINGS_H

#include "report.h"

/* One line `setting` for each. Those that the lab found in its own environment it has taken out, so what is there is a
 * setting under test, or a script of the program's own has set it. Very long names and values are left out. */
void settings_report(struct report *report);

#endif
