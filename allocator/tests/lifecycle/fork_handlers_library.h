#ifndef FREESTONE_TESTS_FORK_HANDLERS_LIBRARY_H
#define FREESTONE_TESTS_FORK_HANDLERS_LIBRARY_H

/* How many of the functions ran; one set is registered as the library is loaded. */
extern int fork_handlers_calls;

/* Registers another set. */
void fork_handlers_register(void);

#endif
