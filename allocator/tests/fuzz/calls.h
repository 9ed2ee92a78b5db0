/* A sequence of calls, spelled by bytes, and a model of what each block must be. For fuzzers (make fuzz) and, with the inputs that were kept, for
 * the tests. Every sequence is a correct program: whatever stops it, or differs from the model, is the library's fault. */
#ifndef FREESTONE_TESTS_CALLS_H
#define FREESTONE_TESTS_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* Plays it from an empty heap to an empty heap. Ends the process, with a line, where something is wrong. */
void calls_play(const uint8_t *bytes, size_t count);

#endif
