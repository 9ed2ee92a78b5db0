/* A library of the program's that has functions of its own by the names of all those of libc's in front of which libfreestone stands. */
#ifndef FREESTONE_TESTS_OWN_NAMES_H
#define FREESTONE_TESTS_OWN_NAMES_H

#include "../../src/libc.h"

#define OWN_NAMES(name) \
    LIBC_IDENTITY(name) \
    LIBC_TASKS(name) LIBC_SIGNALS(name) LIBC_FREEING(name) LIBC_CONFINEMENT(name) LIBC_LOADING(name) name(syscall)

/* The seventh integer lies on the stack on x86-64. */
typedef void *own_function(long a, long b, long c, long d, long e, long f, long g, double x);

#define OWN_DECLARED(name) own_function own_##name __asm__(#name);
OWN_NAMES(OWN_DECLARED)

/* The last call of any of them. */
struct own_call {
    const char *name;
    long integers[7];
    double number;
};
const struct own_call *own_call(void);

#endif
