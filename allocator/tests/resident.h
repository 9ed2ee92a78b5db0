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

static inline size_t resident_bytes_of(enum resident_column column) {
    char text[128];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    EXPECT(file >= 0, "/proc/self/statm cannot be opened");
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    EXPECT(length > 0, "/proc/self/statm cannot be read");
    text[length] = '\0';
    const char *at = column == RESIDENT_ALL ? text : strchr(text, ' ');
    EXPECT(at != NULL, "/proc/self/statm reads '%s'", text);
    return (size_t)strtoul(at, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Resident set in KiB. */
static inline size_t resident_kib(void) { return resident_bytes_of(RESIDENT_SET) / 1024; }

/* What is mapped, resident or not, in bytes: what RLIMIT_AS limits. */
static inline size_t address_space_bytes(void) { return resident_bytes_of(RESIDENT_ALL); }

/* Page faults so far that read nothing. */
static inline long minor_faults(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0, "no usage");
    return usage.ru_minflt;
}

#endif
