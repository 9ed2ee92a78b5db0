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

/* The next step, behind the first of these lines where neither guard nor harden is on. What is foreign was never a block that could be guarded. */
#define MESSAGE_ADVICE "; FREESTONE_OPTIONS=guard=1 may name the place (docs/reference/misuse.md)"
#define MESSAGE_FOREIGN_ADVICE " (docs/reference/misuse.md)"

/* Behind the line of a check that some programs do not pass, though they run: the option that leaves the check out. */
#define MESSAGE_KINDS " (kinds=0 leaves this check out)"

/* Of checked blocks (hardened.h): what was written where nothing of the block's lies. `at` counts bytes: behind the block's end, 0 where its size is
 * not known any more; before its start, 0 where that is not known; from the start of what was freed. */
_Noreturn void message_overflow(const void *pointer, const char *what, size_t bytes, size_t at);
_Noreturn void message_underflow(const void *pointer, const char *what, size_t bytes, size_t at);
_Noreturn void message_written_after_free(const void *pointer, size_t bytes, size_t at);

/* Ends the process, after what was said. */
_Noreturn void message_stop(void);

/* Of checked blocks: it holds another number of bytes than its owner told; and it was made by one function, and another's end was asked for. */
_Noreturn void message_other_size(const void *pointer, size_t given, size_t bytes);
_Noreturn void message_mismatch(const void *pointer, const char *made, const char *freed);

#endif
