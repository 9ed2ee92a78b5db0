/* A program started by a wrapper: it does not outlive the wrapper, and its own output is not the wrapper's. */
#pragma once

#include <sys/types.h>

/* Start `command`; its standard output goes nowhere. The wrapper ends with one line and status 1 where it cannot fork.
 * A program that cannot be executed ends with status 127, as in a shell. */
pid_t child_start(char *const *command);

/* Wait for its end: 0 for exit status 0, else one line that names it, and 1. `ending`: a signal that may end it. */
int child_wait(pid_t child, const char *name, int ending);
