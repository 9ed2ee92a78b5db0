/* The parts of every program of misuse: it prints on standard output the line that the allocator will print, misuses
 * the heap, and should end before it prints that it was allowed to. stopped.c runs it and compares.
 *
 * Numbers are spelled out in each program: they are part of what a user reads. */
#ifndef FREESTONE_TESTS_MISUSE_H
#define FREESTONE_TESTS_MISUSE_H

#include <stdint.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

/* The next step behind the line, by default alone: guard and harden tell more by themselves. */
static inline const char *advice_after(const char *line) {
    const char *options = getenv("FREESTONE_OPTIONS");
    if (options != NULL && (strstr(options, "guard=") != NULL || strstr(options, "harden=1") != NULL)) {
        return "";
    }
    return strncmp(line, "foreign", 7) == 0
               ? " (docs/reference/misuse.md)"
               : "; FREESTONE_OPTIONS=guard=1 may name the place (docs/reference/misuse.md)";
}

/* The line to come, without the library's name and the newline. Written by a call of its own: stdio's buffer would be
 * lost in the abort. */
__attribute__((format(printf, 1, 2))) static inline void announce(const char *format, ...) {
    require_serving();
    char line[384];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    EXPECT(length > 0, "no line");
    length += snprintf(line + length, sizeof line - (size_t)length, "%s", advice_after(line));
    EXPECT(write(STDOUT_FILENO, line, (size_t)length) == length, "standard output takes nothing");
}

/* Some misuse is found only when the thread's cache goes back to the slabs; this brings it about. */
static inline void flush(void) { (void)freestone_purge(); }

static inline int unnoticed(void) { EXPECT(0, "the misuse went unnoticed"); }

#endif
