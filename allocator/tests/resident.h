/* What the process holds of memory, asked of the kernel without touching the heap. */
#ifndef FREESTONE_TESTS_RESIDENT_H
#define FREESTONE_TESTS_RESIDENT_H

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "expect.h"

enum resident_column { RESIDENT_ALL, RESIDENT_SET }; /* of /proc/self/statm */

/* What the kernel has in a file about the process, as far as there is room. */
static inline void resident_read(const char *path, char *text, size_t room) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    EXPECT(file >= 0, "%s cannot be opened", path);
    ssize_t length = read(file, text, room - 1);
    close(file);
    EXPECT(length > 0, "%s cannot be read", path);
    text[length] = '\0';
}

static inline size_t resident_bytes_of(enum resident_column column) {
    char text[128];
    resident_read("/proc/self/statm", text, sizeof text);
    const char *at = column == RESIDENT_ALL ? text : strchr(text, ' ');
    EXPECT(at != NULL, "/proc/self/statm reads '%s'", text);
    return (size_t)strtoul(at, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Resident set in KiB. */
static inline size_t resident_kib(void) { return resident_bytes_of(RESIDENT_SET) / 1024; }

/* The highest that the resident set has been since the program began, in KiB. */
static inline size_t resident_peak_kib(void) {
    char text[4096];
    resident_read("/proc/self/status", text, sizeof text);
    const char *peak = strstr(text, "VmHWM:");
    EXPECT(peak != NULL, "no peak in /proc/self/status");
    return (size_t)strtoul(peak + strlen("VmHWM:"), NULL, 10);
}

/* What is mapped, resident or not, in bytes: what RLIMIT_AS limits. */
static inline size_t address_space_bytes(void) { return resident_bytes_of(RESIDENT_ALL); }

/* Page faults so far that read nothing. */
static inline long minor_faults(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0, "no usage");
    return usage.ru_minflt;
}

#endif
