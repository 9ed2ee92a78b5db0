/* Faults in pages that the library keeps closed, of guarded blocks (guarded.h) and in the hardened heap (hardened.h). */
#ifndef FREESTONE_FAULT_HANDLER_H
#define FREESTONE_FAULT_HANDLER_H

/* Says of the faults that the kernel tells of what they were; they go on to who was there before. Once in a process: whoever sets a handler of his
 * own later may pass on to this one, and to put it in front of him again would have the two call each other for ever. */
void fault_handler_set(void);

#endif
