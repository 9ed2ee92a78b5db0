#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Plain system calls: open and write may be wrapped by the program or by another preload. */
void report_send(struct report *report) {
    const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (report->create ? O_CREAT | O_EXCL : 0);
    const long descriptor = syscall(SYS_openat, AT_FDCWD, report->path, flags, 0644);
    if (descriptor < 0)
        return; /* the image then counts as unseen, which is the truth about it */
    size_t sent = 0;
    report->create = false;
    while (sent < report->used) {
        const long done = syscall(SYS_write, descriptor, report->text + sent, report->used - sent);
        if (done <= 0)
            break;
        sent += (size_t)done;
    }
    syscall(SYS_close, descriptor);
    report->used = 0;
}

static void put(struct report *report, char byte) {
    if (report->used == report->size && report->path != NULL)
        report_send(report);
    if (report->used < report->size)
        report->text[report->used++] = byte;
    else
        report->cut = true;
}

void report_word(struct report *report, const char *word) {
    while (*word != '\0')
        put(report, *word++);
    put(report, ' ');
}

void report_number(struct report *report, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0)
        put(report, digits[--count]);
    put(report, ' ');
}

static void put_hex(struct report *report, unsigned char byte) {
    static const char digits[] = "0123456789abcdef";
    put(report, digits[byte >> 4]);
    put(report, digits[byte & 15]);
}

void report_hex(struct report *report, const unsigned char *bytes, size_t count) {
    if (count == 0)
        put(report, '-');
    for (size_t i = 0; i < count; i++)
        put_hex(report, bytes[i]);
    put(report, ' ');
}

void report_path(struct report *report, const char *path) {
    for (const unsigned char *s = (const unsigned char *)path; *s != '\0'; s++) {
        if (*s <= 0x20 || *s == '%' || *s == 0x7F) {
            put(report, '%');
            put_hex(report, *s);
        } else {
            put(report, (char)*s);
        }
    }
    put(report, ' ');
}

void report_line(struct report *report) {
    if (report->used > 0 && report->text[report->used - 1] == ' ')
        report->used--;
    put(report, '\n');
}
