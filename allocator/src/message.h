/* One line on standard error, composed without allocating. */
#ifndef FREESTONE_MESSAGE_H
#define FREESTONE_MESSAGE_H

#include "bits.h"

/* A line under construction; longer text is cut at the end of the buffer. */
struct message {
    size_t length;
    char text[376];
};

void message_text(struct message *message, const char *text);
void message_number(struct message *message, uint64_t value);
void message_pointer(struct message *message, const void *pointer);

/* Writes the line with the library's name before it and a newline behind it. */
void message_print(const struct message *message);

/* The misuses the allocator can tell. Each prints its line (docs/reference/misuse.md) and aborts. `what` is
 * "size class" or "span", `bytes` its size. */
_Noreturn void message_double_free(const void *pointer, const char *what, size_t bytes);
_Noreturn void message_interior_pointer(const void *pointer, const char *what, size_t bytes);
_Noreturn void message_foreign_pointer(const void *pointer);
_Noreturn void message_wrong_size(const void *pointer, size_t given, const char *what, size_t bytes);

#endif
