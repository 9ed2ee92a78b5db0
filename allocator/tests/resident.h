/* What the process holds of memory, asked of the kernel without touching the heap. */
#ifndef FREESTONE_TESTS_RESIDENT_H
#define FREESTONE_TESTS_RESIDENT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* By how much `now_kib` is above `before_kib`: a trim may also give back what was resident before. */
static inline size_t resident_more_kib(size_t now_kib, size_t before_kib) {
    return now_kib > before_kib ? now_kib - before_kib : 0;
}

/* Whether a setting of the kernel's for transparent huge pages stands at `word`, as "[word]"; false where there is none. */
static inline bool resident_set_to(const char *path, const char *word) {
    char text[128], wanted[32];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    text[length < 0 ? 0 : length] = '\0';
    snprintf(wanted, sizeof wanted, "[%s]", word);
    return strstr(text, wanted) != NULL;
}

/* The most that one fault brings in, in bytes, where nobody has advised anything: a page, or the largest folio that the
 * kernel gives unasked. */
static inline size_t resident_piece_bytes(void) {
    enum { LARGEST = 2048 }; /* KiB; more on some machines with large pages, where it is a huge page of their own */
    bool always = resident_set_to("/sys/kernel/mm/transparent_hugepage/enabled", "always");
    for (size_t kib = LARGEST; kib * 1024 > (size_t)sysconf(_SC_PAGESIZE); kib /= 2) {
        char path[96];
        snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/hugepages-%zukB/enabled", kib);
        bool unasked = resident_set_to(path, "always") || (always && resident_set_to(path, "inherit"));
        if (unasked || (always && kib == LARGEST && access(path, F_OK) != 0)) {
            return kib * 1024;
        }
    }
    return (size_t)sysconf(_SC_PAGESIZE);
}

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

/* From here on at most `bytes` more may be mapped; returns the limit that was. */
static inline struct rlimit address_space_limit(size_t bytes) {
    struct rlimit before;
    EXPECT(getrlimit(RLIMIT_AS, &before) == 0, "no limit is told");
    struct rlimit limit = {address_space_bytes() + bytes, before.rlim_max};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "the limit was refused");
    return before;
}

/* Page faults so far that read nothing. */
static inline long minor_faults(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0, "no usage");
    return usage.ru_minflt;
}

#endif
