/* A condition a behaviour rests on, and the one line that says which did not hold.
 *
 * The message is formatted on the stack and written by one system call: a broken heap must not silence the test
 * that finds it. Exit status 1 is a failure, 77 a skip (with its reason on standard error). */
#ifndef FREESTONE_TESTS_EXPECT_H
#define FREESTONE_TESTS_EXPECT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXPECT_SKIPPED = 77 };

__attribute__((noreturn, format(printf, 3, 0))) static inline void expect_end(int status, const char *lead,
                                                                              const char *format, va_list arguments) {
    char line[512];
    int used = snprintf(line, sizeof line, "%s", lead);
    size_t at = used < 0 ? 0 : (size_t)used;
    if (at < sizeof line - 1) {
        used = vsnprintf(line + at, sizeof line - at - 1, format, arguments);
        at = strlen(line);
    }
    line[at] = '\n';
    (void)!write(STDERR_FILENO, line, at + 1);
    _exit(status);
}

__attribute__((noreturn, format(printf, 4, 5))) static inline void
expect_failed(const char *file, int line, const char *condition, const char *format, ...) {
    char lead[256];
    snprintf(lead, sizeof lead, "%s:%d: does not hold: %s: ", file, line, condition);
    va_list arguments;
    va_start(arguments, format);
    expect_end(EXIT_FAILURE, lead, format, arguments);
}

/* Fails the program unless `condition` holds; the rest is a printf format with what was seen instead. */
#define EXPECT(condition, ...)                                          \
    do {                                                                \
        if (!(condition)) {                                             \
            expect_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
        }                                                               \
    } while (0)

/* Ends the program as skipped, saying why. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void expect_skip(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    expect_end(EXPECT_SKIPPED, "skipped: ", format, arguments);
}

#endif
