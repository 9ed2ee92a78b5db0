/* Programs started by a wrapper: they do not outlive it, and their own output is not the wrapper's. A wrapper that is told
 * to end (SIGINT, SIGTERM, SIGHUP) ends what it waits for, can still clear up, and then ends by that signal. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { CANNOT_EXECUTE = 127 }; /* the status of a program that cannot be executed, as in a shell */

/* From now on a signal that tells the wrapper to end is kept until somebody waits; orphans of its programs become its
 * own. To be called once, before anything is started. */
void children_keep(void);

/* Start `command`; its standard output goes nowhere. The wrapper ends with one line and status 1 where it cannot fork.
 *
 * `never_root`: where the wrapper is root, the program is nobody: in a user namespace of its own, where it has none of
 * root's powers but may read what root may read, such as an allocator below root's home. Where namespaces are forbidden
 * it becomes the user nobody instead, who is also given `folder`. */
pid_t child_start(char *const *command, bool never_root, const char *folder);

/* Wait for its end: 0 for exit status 0, else one line that names it, and 1. `ending`: a signal that may end it. */
int child_wait(pid_t child, const char *name, int ending);

/* The same in silence, for a program that is asked again and again: its exit status, 128 and more for a signal. */
int child_asked(pid_t child);

/* Sleep, less long where the wrapper is told to end. */
void child_pause(double seconds);

/* Whether the wrapper was told to end. */
bool children_told_to_end(void);

/* Wait until no child is left, orphans included, but for half a second at most. */
void children_gone(void);

/* End by the signal that told the wrapper to; nothing if there was none. */
void children_obey(void);
