/* Writing one JSON value after another to a stream, with the commas in the right places.
 *
 * Paths are bytes, JSON is text: a byte that is not part of valid UTF-8 is written as the lone surrogate U+DC80..U+DCFF,
 * which is how Python's os.fsdecode names it. */
#ifndef FREESTONE_LAUNCHER_JSON_H
#define FREESTONE_LAUNCHER_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool comma; /* something already stands before the next value in this object or array */
};

void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *key, const char *value); /* NULL is null */
void json_integer(struct json *json, const char *key, int64_t value);
void json_seconds(struct json *json, const char *key, uint64_t nanoseconds);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
