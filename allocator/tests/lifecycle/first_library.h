#ifndef FREESTONE_TESTS_FIRST_LIBRARY_H
#define FREESTONE_TESTS_FIRST_LIBRARY_H

/* Fails the program unless what the library's constructor allocated is as it left it. */
void first_library_check(void);

#endif
