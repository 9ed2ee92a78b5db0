#include "report.h"

#include "moment.h"
#include "resident.h"
#include "store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char line[1 << 16];
static size_t length;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int more = vsnprintf(line + length, sizeof line - length, format, values);
    va_end(values);
    if (more < 0 || (size_t)more >= sizeof line - length) {
        fprintf(stderr, "%s: the line of results is too long; ask for fewer figures\n", program_name());
        exit(1);
    }
    length += (size_t)more;
}

static void add_key(const char *key) {
    add("%s\"", line[length - 1] == '{' ? "" : ", ");
    for (; *key != '\0'; key++)
        add("%c", *key == '-' ? '_' : *key);
    add("\": ");
}

static void add_parameter(const struct parameter *p) {
    add_key(p->name);
    switch (p->kind) {
    case COUNT:
    case BYTES:
        add("%" PRIu64, *(const uint64_t *)p->value);
        break;
    case REAL:
        add("%.9g", *(const double *)p->value);
        break;
    case CHOICE:
        add("\"%s\"", p->words[*(const uint64_t *)p->value]);
        break;
    case FLAG:
        add("%s", *(const bool *)p->value ? "true" : "false");
        break;
    }
}

void report_open(const struct program *program) {
    add("{");
    add_key("program");
    add("\"%s\"", program->name);
    for (size_t i = 0; i < program->parameter_count; i++)
        if (strcmp(program->parameters[i].name, "operations") != 0)
            add_parameter(&program->parameters[i]);
}

void report_measurement(struct measurement run) {
    report_count("operations", run.operations);
    report_real("seconds", run.seconds);
    add_key("checksum");
    add("\"%016" PRIx64 "\"", run.checksum);
}

void report_floor(struct measurement floor, double scale) {
    report_real("floor_seconds", floor.seconds / scale);
    report_real("floor_scale", scale);
}

void report_floor_of(struct measurement floor, struct measurement run) {
    report_floor(floor, (double)floor.operations / (double)run.operations);
}

void report_no_floor(void) {
    add_key("floor_seconds");
    add("null");
}

void report_count(const char *key, uint64_t value) {
    add_key(key);
    add("%" PRIu64, value);
}

void report_real(const char *key, double value) {
    add_key(key);
    add("%.9g", value);
}

void report_counts(const char *key, const uint64_t *values, size_t count) {
    add_key(key);
    add("[");
    for (size_t i = 0; i < count; i++)
        add("%s%" PRIu64, i == 0 ? "" : ", ", values[i]);
    add("]");
}

void report_reals(const char *key, const double *values, size_t count) {
    add_key(key);
    add("[");
    for (size_t i = 0; i < count; i++)
        add("%s%.9g", i == 0 ? "" : ", ", values[i]);
    add("]");
}

void report_inner(const char *key) {
    add_key(key);
    add("{");
}

void report_inner_end(void) { add("}"); }

void report_close(void) {
    if (program_idle_seconds() > 0) {
        sleep_until(moment_ns() + program_idle_seconds() * 1000000000u);
        report_count("rss_kib_idle", resident_kib());
    }
    report_count("harness_kib", store_peak_kib());
    add("}\n");
    for (size_t at = 0; at < length;) {
        const ssize_t written = write(STDOUT_FILENO, line + at, length - at);
        if (written <= 0) {
            fprintf(stderr, "%s: the line of results could not be written\n", program_name());
            exit(1);
        }
        at += (size_t)written;
    }
}
