/* Performance counters of the whole tree, where the machine has them. What cannot be counted is absent, never 0.
 *
 * The events are opened on the launcher itself, switched off, to be inherited by the program and switched on by its
 * exec; the launcher's own work is therefore never counted. */
#ifndef FREESTONE_LAUNCHER_COUNTERS_H
#define FREESTONE_LAUNCHER_COUNTERS_H

#include "json.h"

/* Before the program starts. */
void counters_open(void);

/* After the tree has ended. An event that shared its hardware with others is scaled up by the time it was counting. */
void counters_write(struct json *json);

/* "counters": the names of those that could be opened. */
void counters_names(struct json *json);

#endif
