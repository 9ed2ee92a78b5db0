/* The lock of replaced_functions.c, under which the program allocates too. */
#ifndef FREESTONE_TESTS_REPLACED_FUNCTIONS_H
#define FREESTONE_TESTS_REPLACED_FUNCTIONS_H

void replaced_lock(void);
void replaced_unlock(void);

#endif
