/* The auditor: recounts everything the library keeps, and stops the run where something is in two places, in none, or miscounted. */
#ifndef FREESTONE_SIMULATOR_AUDITOR_H
#define FREESTONE_SIMULATOR_AUDITOR_H

#include "script.h"

/* By the scheduler, while every fiber stands still at an atomic, a sleep, or between two operations. What is being changed by
 * somebody who stands still in the middle of it is left out; at rest nothing is. */
void audit(void);

/* Around each step: what it has to have done, where it ran from one rest to the next, and no fork was part of it. */
void audit_before(const struct step *step);
void audit_after(const struct step *step);

/* The process is a child from now on: unless the fork was announced, and waited for, its structures need not be whole. */
void auditor_fork(bool announced);

#endif
