/* The auditor: recounts everything the library keeps, and stops the run where something is in two places, in none, or miscounted. */
#ifndef FREESTONE_SIMULATOR_AUDITOR_H
#define FREESTONE_SIMULATOR_AUDITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "failure.h"

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

/* By the scheduler, while every fiber stands still at an atomic, a sleep, or between two operations. What is being changed by
 * somebody who stands still in the middle of it is left out; at rest nothing is. */
void audit(void);

/* The process is a child from now on: unless the fork was announced, and waited for, its structures need not be whole. */
void auditor_fork(bool announced);
bool auditor_is_in_child(void);

/* The library is open, and this process not a child that nobody has put right. */
bool auditor_sees(void);

/* Of the street: slices that may have a descriptor end before it, and whether a slab starts there. */
uint32_t auditor_extent(void);
bool auditor_has_slab(uint32_t slice);

/* By the running thread, whose cache is gone: its fast paths have to know. */
void audit_forgotten(void);

#endif
