/* Text composed in a buffer of the caller's, without libc and without allocating. Leaf.
 *
 * What does not fit is cut, and counted: as with snprintf, `length` is what the whole text has. */
#ifndef FREESTONE_TEXT_H
#define FREESTONE_TEXT_H

#include "bits.h"

/* Starts as {.to = buffer, .size = its bytes}; the text in it is always terminated when there is room for that. */
struct text {
    char *to;
    size_t size, length;
};

void text_add(struct text *text, const char *more);
void text_decimal(struct text *text, uint64_t value);
void text_hexadecimal(struct text *text, uint64_t value);

#endif
