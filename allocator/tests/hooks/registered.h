/* Registered memory without a network card: a pipe holds the page itself (vmsplice), as a card does, whatever becomes of the address. */
#ifndef FREESTONE_TESTS_REGISTERED_H
#define FREESTONE_TESTS_REGISTERED_H

#include <stddef.h>

/* From now on the page is registered, until it is forgotten or an event tells that the address may have another. Skips the program where a
 * pipe cannot hold pages. */
void registered_page(char *page);

/* An event: the registrations there end. By any thread. */
void registered_lost(const char *at, size_t bytes);

/* Compares all registrations that have not ended with what lies at their addresses, and ends them. Returns how many had not. Fails the program
 * if another page lies there than the pipe holds. */
size_t registered_check(void);

#endif
