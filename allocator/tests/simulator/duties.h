/* What each step owes: memory that has to be given back, threads that have to be woken or moved, wishes that have to be made. The auditor sees
 * what is counted wrongly; this sees what was left undone. */
#ifndef FREESTONE_SIMULATOR_DUTIES_H
#define FREESTONE_SIMULATOR_DUTIES_H

#include "script.h"

/* Around each step. Only what runs from one rest to the next, with nothing refused, is asked for all it owes. */
void duties_before(const struct step *step);
void duties_after(const struct step *step);

#endif
