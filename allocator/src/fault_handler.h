/* Faults in pages that the library keeps closed, of guarded blocks (guarded.h) and in the hardened heap (hardened.h). */
#ifndef FREESTONE_FAULT_HANDLER_H
#define FREESTONE_FAULT_HANDLER_H

#include "bits.h"

struct sigaction;

/* Says of the faults that the kernel tells of what they were; they go on to who was there before. Once in a process. */
void fault_handler_set(void);

/* -- by who stands before libc's sigaction and its like (api_signals.c) ----------------------------------------- */

/* Whether the handler stands before the program's own for that signal, as far as the program cannot see. */
bool fault_handler_stands(int number);

/* Then: what the program believes to be set. */
void fault_handler_behind(int number, struct sigaction *action);

/* Whether that is the handler, and not the program's. */
bool fault_handler_is_own(const struct sigaction *action);

/* Then: the program has set something, and the handler stands before that from now on. Not while the signal is ignored, nor in a process that has
 * put itself under filters. When two threads set something at the very same instant, one of them may be told the other's predecessor. */
void fault_handler_return(int number);

/* In the child of a fork. */
void fault_handler_after_fork(void);

#endif
