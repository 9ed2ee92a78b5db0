#include "program.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct program *current;
static bool without_floor;
static uint64_t idle_seconds;

static const struct parameter of_all[] = {
    {"no-floor", FLAG, &without_floor, 0, 0, NULL,
     "do not run the loop over the null allocator: floor_seconds is null"},
    {"idle", COUNT, &idle_seconds, 0, 3600, NULL, "seconds to sleep after all the work, before rss_kib_idle"},
};
enum { OF_ALL = sizeof of_all / sizeof *of_all };

const char *program_name(void) { return current->name; }

bool program_has_floor(void) { return !without_floor; }

uint64_t program_idle_seconds(void) { return idle_seconds; }

void program_refuse(const char *reason, ...) {
    char line[512];
    va_list values;
    va_start(values, reason);
    vsnprintf(line, sizeof line, reason, values);
    va_end(values);
    fprintf(stderr, "%s: %s; see --help\n", current->name, line);
    exit(2);
}

static void print_default(const struct parameter *p) {
    switch (p->kind) {
    case COUNT:
    case BYTES:
        printf(" (%" PRIu64 ")", *(const uint64_t *)p->value);
        break;
    case REAL:
        printf(" (%g)", *(const double *)p->value);
        break;
    case CHOICE:
        printf(" (%s)", p->words[*(const uint64_t *)p->value]);
        break;
    case FLAG:
        break;
    }
}

static void print_parameter(const struct parameter *p) {
    static const char *const kinds[] = {"N", "BYTES", "X", "", ""};
    char head[128];
    int length = snprintf(head, sizeof head, "  --%s %s", p->name, kinds[p->kind]);
    for (size_t i = 0; p->kind == CHOICE && p->words[i] != NULL; i++)
        length += snprintf(head + length, sizeof head - (size_t)length, "%s%s", i == 0 ? "" : "|", p->words[i]);
    printf("%-24s %s", head, p->help);
    print_default(p);
    putchar('\n');
}

static const struct parameter *find_in(const struct parameter *table, size_t count, const char *name, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
            return &table[i];
    return NULL;
}

/* A program's own parameter goes before one of all programs. */
static const struct parameter *find(const char *name, size_t length) {
    const struct parameter *own = find_in(current->parameters, current->parameter_count, name, length);
    return own != NULL ? own : find_in(of_all, OF_ALL, name, length);
}

static void help(void) {
    printf("usage: %s [options]\n%s\nPrints one line of JSON. Defaults are in brackets.\n", current->name,
           current->purpose);
    for (size_t i = 0; i < current->parameter_count; i++)
        print_parameter(&current->parameters[i]);
    for (size_t i = 0; i < OF_ALL; i++)
        if (find(of_all[i].name, strlen(of_all[i].name)) == &of_all[i])
            print_parameter(&of_all[i]);
    exit(fflush(stdout) == 0 ? 0 : 1);
}

static double unit(const char *suffix) {
    if (*suffix == '\0')
        return 1;
    static const char letters[] = "KMG";
    const char *letter = strchr(letters, *suffix);
    if (letter == NULL || suffix[1] != '\0')
        return NAN;
    return (double)(UINT64_C(1) << (10 * (letter - letters + 1)));
}

static void read_number(const struct parameter *p, const char *text) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || errno != 0 || *text == '-')
        value = NAN;
    value *= p->kind == BYTES ? unit(end) : *end == '\0' ? 1 : NAN;
    const bool whole = p->kind == REAL || value == floor(value);
    if (!(value >= p->least && value <= p->most) || !whole)
        program_refuse("--%s is %s from %.15g to %.15g, not '%s'", p->name,
                       p->kind == REAL ? "a number" : "a whole number", p->least, p->most, text);
    if (p->kind == REAL)
        *(double *)p->value = value;
    else
        *(uint64_t *)p->value = (uint64_t)value;
}

static void read_choice(const struct parameter *p, const char *text) {
    char known[256] = "";
    for (size_t i = 0; p->words[i] != NULL; i++) {
        if (strcmp(p->words[i], text) == 0) {
            *(uint64_t *)p->value = i;
            return;
        }
        strncat(known, i == 0 ? "" : ", ", sizeof known - strlen(known) - 1);
        strncat(known, p->words[i], sizeof known - strlen(known) - 1);
    }
    program_refuse("--%s is one of %s, not '%s'", p->name, known, text);
}

void program_read(const struct program *program, int argc, char **argv) {
    current = program;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            help();
        if (strncmp(argv[i], "--", 2) != 0)
            program_refuse("'%s' is not an option", argv[i]);
        const char *name = argv[i] + 2;
        const char *equals = strchr(name, '=');
        const struct parameter *p = find(name, equals == NULL ? strlen(name) : (size_t)(equals - name));
        if (p == NULL)
            program_refuse("there is no option '%s'", argv[i]);
        if (p->kind == FLAG) {
            if (equals != NULL)
                program_refuse("--%s takes no value", p->name);
            *(bool *)p->value = true;
            continue;
        }
        if (equals == NULL && i + 1 == argc)
            program_refuse("--%s needs a value", p->name);
        const char *text = equals == NULL ? argv[++i] : equals + 1;
        if (p->kind == CHOICE)
            read_choice(p, text);
        else
            read_number(p, text);
    }
}
