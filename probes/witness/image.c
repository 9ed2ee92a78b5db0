#define _GNU_SOURCE
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t image_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void image_wait_until(uint64_t moment_ns) {
    const struct timespec until = {(time_t)(moment_ns / 1000000000u), (long)(moment_ns % 1000000000u)};
    while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0 && errno == EINTR) {
    }
}

int image_pid(void) { return (int)syscall(SYS_getpid); }

int image_parent(void) { return (int)syscall(SYS_getppid); }

uint64_t image_resident_kib(void) {
    char text[128];
    const long descriptor = syscall(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0)
        return 0;
    const long got = syscall(SYS_read, descriptor, text, sizeof text - 1);
    syscall(SYS_close, descriptor);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    const char *s = text;
    while (*s != ' ' && *s != '\0')
        s++; /* the first field is the address space */
    uint64_t pages = 0;
    for (s += *s == ' '; *s >= '0' && *s <= '9'; s++)
        pages = pages * 10 + (uint64_t)(*s - '0');
    return pages * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

/* The number behind a name such as "VmHWM:" at the beginning of a line. */
static uint64_t number_of(const char *text, const char *name) {
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, strlen(name)) != 0)
            continue;
        const char *s = line + strlen(name);
        while (*s == ' ' || *s == '\t')
            s++;
        uint64_t number = 0;
        for (; *s >= '0' && *s <= '9'; s++)
            number = number * 10 + (uint64_t)(*s - '0');
        return number;
    }
    return 0;
}

uint64_t image_private_peak_kib(void) {
    char text[4096];
    const long descriptor = syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0)
        return 0;
    const long got = syscall(SYS_read, descriptor, text, sizeof text - 1);
    syscall(SYS_close, descriptor);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    const uint64_t most = number_of(text, "VmHWM:"), files = number_of(text, "RssFile:");
    return most > files ? most - files : 0;
}

struct image_memory image_memory(void) {
    char text[4096];
    size_t used = 0;
    const long descriptor = syscall(SYS_openat, AT_FDCWD, "/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0)
        return (struct image_memory){0};
    for (long got = 1; got > 0 && used < sizeof text - 1; used += got > 0 ? (size_t)got : 0)
        got = syscall(SYS_read, descriptor, text + used, sizeof text - 1 - used);
    syscall(SYS_close, descriptor);
    text[used] = '\0';
    return (struct image_memory){.known = used > 0,
                                 .pss_kib = number_of(text, "Pss:"),
                                 .huge_kib = number_of(text, "AnonHugePages:"),
                                 .lazy_free_kib = number_of(text, "LazyFree:")};
}

uint64_t image_thread_ns(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void image_program(char path[IMAGE_PATH]) {
    const long length = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, (size_t)IMAGE_PATH - 1);
    path[length > 0 ? length : 0] = '\0';
}

/* Reading numbers out of one line of maps; `*s` moves behind the digits. */
static uint64_t take_hex(const char **s) {
    uint64_t value = 0;
    for (;; (*s)++) {
        const char c = **s;
        if (c >= '0' && c <= '9')
            value = value * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (uint64_t)(c - 'a' + 10);
        else
            return value;
    }
}

static uint64_t take_decimal(const char **s) {
    uint64_t value = 0;
    for (; **s >= '0' && **s <= '9'; (*s)++)
        value = value * 10 + (uint64_t)(**s - '0');
    return value;
}

/* "7f0c-7f0d r-xp 00001000 fe:01 1234   /path with spaces" */
static void match_line(const char *line, struct image_mapping *mappings, size_t count) {
    const char *s = line;
    const uint64_t low = take_hex(&s);
    s += *s == '-';
    const uint64_t high = take_hex(&s);
    for (size_t i = 0; i < count; i++) {
        struct image_mapping *mapping = &mappings[i];
        if (mapping->address < low || mapping->address >= high)
            continue;
        const char *rest = s;
        for (int field = 0; field < 2; field++) { /* behind the permissions, then behind the offset */
            rest += *rest == ' ';
            while (*rest != ' ' && *rest != '\0')
                rest++;
        }
        rest += *rest == ' ';
        mapping->device_major = take_hex(&rest);
        rest += *rest == ':';
        mapping->device_minor = take_hex(&rest);
        rest += *rest == ' ';
        mapping->inode = take_decimal(&rest);
        while (*rest == ' ')
            rest++;
        if (*rest == '/') {
            strncpy(mapping->path, rest, IMAGE_PATH - 1);
            mapping->path[IMAGE_PATH - 1] = '\0';
        }
    }
}

void image_mappings(struct image_mapping *mappings, size_t count) {
    char text[IMAGE_PATH + 512];
    size_t held = 0;
    for (size_t i = 0; i < count; i++)
        mappings[i].path[0] = '\0';
    const long descriptor = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0)
        return;
    for (;;) {
        const long got = syscall(SYS_read, descriptor, text + held, sizeof text - 1 - held);
        if (got <= 0)
            break;
        held += (size_t)got;
        text[held] = '\0';
        char *line = text;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            match_line(line, mappings, count);
        }
        held -= (size_t)(line - text);
        if (held == sizeof text - 1)
            held = 0; /* a line longer than any path: not ours to read */
        memmove(text, line, held);
    }
    syscall(SYS_close, descriptor);
}
