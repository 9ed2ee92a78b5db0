/* The cases of one program, run by name. */
#ifndef FREESTONE_TESTS_CASES_H
#define FREESTONE_TESTS_CASES_H

#include <stdbool.h>
#include <stddef.h>

#include "expect.h"

struct test_case {
    const char *name;
    void (*run)(void);
};

/* Runs the case that the program's first argument names. Fails the program if there is none. */
static inline void run_case(const struct test_case *cases, size_t cases_count, int count, char **arguments) {
    for (size_t i = 0; i < cases_count; i++) {
        if (count > 1 && strcmp(arguments[1], cases[i].name) == 0) {
            cases[i].run();
            return;
        }
    }
    EXPECT(false, "no such case");
}

#endif
