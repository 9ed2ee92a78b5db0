/* What the witness says to the watcher of the heap, which it finds only where both are preloaded. */
#ifndef FREESTONE_HEAPWATCH_H
#define FREESTONE_HEAPWATCH_H

/* A process ends: everything is written down. */
void freestone_heapwatch_leave(void);

#endif
