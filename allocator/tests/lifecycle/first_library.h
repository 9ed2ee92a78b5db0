#ifndef FREESTONE_TESTS_FIRST_LIBRARY_H
#define FREESTONE_TESTS_FIRST_LIBRARY_H

/* Fails the program unless what the library's constructor allocated is as it left it. */
void first_library_check(void);

/* Called before a fork, behind the handlers of all libraries that registered theirs later. */
extern void (*first_library_while_forking)(void);

#endif
