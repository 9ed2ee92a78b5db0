/* Who serves the heap of this process: the four entry points as this library's own references were bound.
 *
 * This library defines none of them. It calls each once, like any other object of the process would. */
#ifndef FREESTONE_WITNESS_HEAP_H
#define FREESTONE_WITNESS_HEAP_H

#include <stddef.h>
#include <stdint.h>

enum { ENTRIES = 4 };

extern const char *const heap_entry_names[ENTRIES]; /* malloc, calloc, realloc, free */

/* Calls the four entry points once. They work when it returns 1; 0 says that one of them gave no memory. */
int heap_call(void);

#endif
