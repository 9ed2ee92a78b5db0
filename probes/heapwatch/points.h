/* The heap as a whole, now and then, and everything at a process's end. */
#ifndef FREESTONE_HEAPWATCH_POINTS_H
#define FREESTONE_HEAPWATCH_POINTS_H

/* Take a point where it is time to. */
void points_due(void);

/* The process ends: write everything down, once. */
void points_leave(void);

#endif
