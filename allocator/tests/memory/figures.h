/* Single figures of freestone_stats_json, read without touching the heap. */
#ifndef FREESTONE_TESTS_FIGURES_H
#define FREESTONE_TESTS_FIGURES_H

#include "entry.h"
#include "expect.h"

static inline size_t figure(const char *name) {
    char text[4096], key[64];
    int length = freestone_stats_json(text, sizeof text);
    EXPECT(length > 0 && (size_t)length < sizeof text, "the figures take %d bytes", length);
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(text, key);
    EXPECT(at != NULL, "no figure '%s' in %s", name, text);
    return strtoull(at + strlen(key), NULL, 10);
}

#endif
