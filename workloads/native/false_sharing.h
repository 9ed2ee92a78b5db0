/* What cache-scratch and cache-thrash have in common: threads that allocate a small block, write it many times and free it,
 * over and over. When blocks of two threads lie in one cache line, the writes of one stall the other. */
#pragma once

#include <stdbool.h>

/* The whole program. `hands_out`: the main thread first allocates one block for each thread, one beside the other, which
 * the threads free before they go on with blocks of their own. */
int false_sharing(const char *name, const char *purpose, bool hands_out, int argc, char **argv);
