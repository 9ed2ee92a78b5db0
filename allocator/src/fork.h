/* Forks: the gate closed before, open again after, and a child put right. */
#ifndef FREESTONE_FORK_H
#define FREESTONE_FORK_H

#include "bits.h"

/* Registers the handlers, once; to be called at the first allocation: it may allocate. */
void fork_watch(void);

/* The calling thread forks: its handlers, and what libc does in between. */
bool fork_is_own(void);

#endif
