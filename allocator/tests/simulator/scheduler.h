/* The scheduler: plays a script, step by step, each thread a fiber. */
#ifndef FREESTONE_SIMULATOR_SCHEDULER_H
#define FREESTONE_SIMULATOR_SCHEDULER_H

#include "script.h"

/* In this process, once. Audits after every `every` steps, and at the end. */
void scheduler_play(const struct script *script, unsigned every);

/* The process is a child that the running thread has forked: it plays so many more steps and ends. A copy that was `whole` may not be taken
 * for torn. */
void scheduler_become_child(uint32_t steps, bool announced, bool whole);

/* Turns that others had while a step was brought to its end. */
extern uint64_t scheduler_turns;

/* Nobody is in the middle of anything. */
bool scheduler_is_at_rest(void);

/* Nobody but the running thread is, nor may the keeper go on. */
bool scheduler_is_alone(void);

#endif
