#include "json.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* Bytes of the valid UTF-8 sequence that starts at `s`, 0 when there is none. Overlong forms, surrogates and values
 * above U+10FFFF are not valid. A terminating NUL is never taken for a continuation byte. */
static size_t sequence_length(const unsigned char *s) {
    if (s[0] < 0x80)
        return 1;
    size_t length;
    unsigned char low = 0x80, high = 0xBF;
    if (s[0] >= 0xC2 && s[0] <= 0xDF) {
        length = 2;
    } else if (s[0] >= 0xE0 && s[0] <= 0xEF) {
        length = 3;
        if (s[0] == 0xE0)
            low = 0xA0;
        if (s[0] == 0xED)
            high = 0x9F;
    } else if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        length = 4;
        if (s[0] == 0xF0)
            low = 0x90;
        if (s[0] == 0xF4)
            high = 0x8F;
    } else {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if (s[i] < low || s[i] > high)
            return 0;
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

static void quote(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0';) {
        const size_t length = sequence_length(s);
        if (length == 0) {
            fprintf(out, "\\udc%02x", *s++);
        } else if (length == 1 && (*s < 0x20 || *s == '"' || *s == '\\' || *s == 0x7F)) {
            fprintf(out, "\\u%04x", *s++);
        } else {
            fwrite(s, 1, length, out);
            s += length;
        }
    }
    fputc('"', out);
}

static void lead(struct json *json, const char *key) {
    if (json->comma)
        fputc(',', json->out);
    json->comma = true;
    if (key != NULL) {
        quote(json->out, key);
        fputc(':', json->out);
    }
}

void json_open(struct json *json, const char *key, char bracket) {
    lead(json, key);
    fputc(bracket, json->out);
    json->comma = false;
}

void json_close(struct json *json, char bracket) {
    fputc(bracket, json->out);
    json->comma = true;
}

void json_text(struct json *json, const char *key, const char *value) {
    if (value == NULL) {
        json_null(json, key);
        return;
    }
    lead(json, key);
    quote(json->out, value);
}

void json_integer(struct json *json, const char *key, int64_t value) {
    lead(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void json_seconds(struct json *json, const char *key, uint64_t nanoseconds) {
    lead(json, key);
    fprintf(json->out, "%" PRIu64 ".%09" PRIu64, nanoseconds / 1000000000u, nanoseconds % 1000000000u);
}

void json_bool(struct json *json, const char *key, bool value) {
    lead(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key) {
    lead(json, key);
    fputs("null", json->out);
}
