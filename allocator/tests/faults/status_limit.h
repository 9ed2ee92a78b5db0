/* A limit of the process a little above what it has now. */
#ifndef FREESTONE_TESTS_STATUS_LIMIT_H
#define FREESTONE_TESTS_STATUS_LIMIT_H

#include <errno.h>

#include "resident.h"

/* Sets a limit of so many bytes more than a line of /proc/self/status tells. */
static inline void set_limit(int resource, const char *name, size_t more) {
    char text[4096];
    resident_read("/proc/self/status", text, sizeof text);
    const char *line = strstr(text, name);
    EXPECT(line != NULL, "no %s in /proc/self/status", name);
    struct rlimit limit;
    EXPECT(getrlimit(resource, &limit) == 0, "errno %d", errno);
    limit.rlim_cur = strtoul(line + strlen(name), NULL, 10) * 1024 + more;
    EXPECT(setrlimit(resource, &limit) == 0, "errno %d", errno);
}

#endif
