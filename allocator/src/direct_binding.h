/* Direct binding: functions of libc that the library calls for itself are bound to libc's own definitions, whoever stands before these. A program or a
 * preload may define one and forward to libc's by a pointer that its constructor sets; the library calls them before any constructor of the program
 * has run. What the library passes on for the program goes another way (libc.h). */
#ifndef FREESTONE_DIRECT_BINDING_H
#define FREESTONE_DIRECT_BINDING_H

#include "bits.h"

#define DIRECT_ALWAYS(name) \
    name(dl_iterate_phdr) name(dlsym) name(pthread_key_create) name(pthread_setspecific) name(_dl_find_object)
#define DIRECT_IN_MODES(name) name(sigaction) /* guard and harden */
#define DIRECT_AT_START(name) name(__register_atfork) name(pthread_atfork) name(secure_getenv) /* and never again */

#define DIRECT_MEMBER(name) DIRECT_##name,
enum direct_function {
    DIRECT_ALWAYS(DIRECT_MEMBER) DIRECT_MODES,
    DIRECT_BEFORE_MODES = DIRECT_MODES - 1,
    DIRECT_IN_MODES(DIRECT_MEMBER) DIRECT_KEPT,
    DIRECT_BEFORE_START = DIRECT_KEPT - 1,
    DIRECT_AT_START(DIRECT_MEMBER) DIRECT_COUNT
};

/* Relaxed: every thread would store the same value. The shared library has its own (libc_loaded.c), which cannot be written later. */
extern void *direct_functions[DIRECT_KEPT] INTERNAL;

/* libc's; NULL if it has none, and in a program without a dynamic linker: then the name is bound to nothing else. */
void *direct_function(enum direct_function which);

/* Fills the table, by a constructor. Until then each call searches. */
void direct_bind(void);

/* As a function that is called: libc's own, else what the name is bound to. */
#define DIRECT(name)                                                                            \
    __extension__({                                                                             \
        __typeof__(&(name)) direct_found = (__typeof__(&(name)))direct_function(DIRECT_##name); \
        direct_found != NULL ? direct_found : (name);                                           \
    })

#endif
