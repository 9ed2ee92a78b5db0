#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct outcome *outcome;

_Noreturn void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (outcome != NULL && outcome->text[0] == '\0') {
        (void)vsnprintf(outcome->text, sizeof outcome->text, format, values);
    } else {
        (void)vfprintf(stderr, format, values);
        (void)fputc('\n', stderr);
    }
    va_end(values);
    if (getenv("SIMULATOR_STOP") != NULL) {
        abort(); /* for a debugger */
    }
    _exit(1);
}
