/* A workload program's face: its name, its parameters, and the one line of JSON it prints. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum parameter_kind {
    COUNT,  /* uint64_t */
    BYTES,  /* uint64_t; K, M and G are understood */
    REAL,   /* double */
    CHOICE, /* uint64_t: the place of the word in `words` */
    FLAG,   /* bool: given or not */
};

struct parameter {
    const char *name; /* as on the command line, without the dashes */
    enum parameter_kind kind;
    void *value; /* holds the default until the command line is read */
    double least, most;
    const char *const *words; /* CHOICE: ends with NULL */
    const char *help;
};

struct program {
    const char *name, *purpose;
    const struct parameter *parameters;
    size_t parameter_count;
};

/* Fill the parameters from the command line. Prints the help and ends with 0 where that is asked for; says what is
 * wrong in one line and ends with 2 where something is. */
void program_read(const struct program *program, int argc, char **argv);

const char *program_name(void);

/* Whether the floor is to be measured: not with --no-floor. */
bool program_has_floor(void);

/* Seconds to sleep after all the work: --idle; 0 without it, and in a program that has an --idle of its own. */
uint64_t program_idle_seconds(void);

/* A combination of parameters that cannot be: one line, and status 2. */
void program_refuse(const char *reason, ...) __attribute__((noreturn, format(printf, 1, 2)));
